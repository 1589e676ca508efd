# shellcheck shell=sh disable=SC2034,SC2154
# The capture helper. Arguments, in this order: the workspace; the roots it must lie under (two); the directory
# where captures are made; key and nonce of this one; the baseline's git directory (empty: that of a clone in this
# sandbox, if it has the tree) and tree, and the base commit (empty: none); the kinds of omissions; the cap in bytes of a file; the most parts; empty directories; names of
# omissions; quiesce (none or pause); its scope (home or user) and process ids (empty: all); the time of our commits
# in epoch seconds (empty: now); the bytes of files up to which they are handed over at once; how many pathspecs to
# take in; these, and those to leave out.
workspace=$1 root_1=$2 root_2=$3 home=$4 key=$5 nonce=$6 lender=$7 wanted_baseline=$8 wanted_base=$9
shift 9
kinds=$1 cap=$2 most_parts=$3 most_empty=$4 most_omitted=$5 quiesce=$6 scope=$7 pids=$8 when=$9
shift 9
most_handed=$1
shift

# The whole repository, if the workspace is a directory in one; never anything above its root.
enter() {
    cd -P -- "$workspace" || broke sh 1 path_invalid ENOENT
    start=$PWD root=
    for candidate in "$root_1" "$root_2"; do
        candidate=$(cd -P -- "$candidate" && printf '%s' "$PWD") || continue
        case $PWD/ in "$candidate"/*) root=$candidate ;; esac
    done
    [ -n "$root" ] || broke sh 1 path_invalid
    while ! [ -e .git ]; do
        if [ "$PWD" = "$root" ]; then cd -- "$start" && return; fi
        cd -P .. || broke sh 1 path_invalid
    done
}

# $directory is ours: $own in it for our work, `out` for what is captured.
make_own() {
    [ -d "$home" ] || ask /dev/null mkdir -p -- "$home" || broke mkdir $?
    directory=$home/$key.$nonce own=$home/$key.$nonce/work
    ask /dev/null mkdir -- "$directory" "$own" "$own/out" || broke mkdir $?
    : >"$own/omitted" && : >"$own/empty" && : >"$own/queue" && : >"$own/parts"
}

# The pathspecs to take in and to leave out.
keep_globs() {
    include=$1
    shift
    : >"$own/includes" && : >"$own/excludes" && : >"$own/excluded"
    while [ "$include" -gt 0 ]; do
        printf ':(top,glob)%s\0' "$1" >>"$own/includes"
        shift && include=$((include - 1))
    done
    for glob; do
        printf ':(top,exclude,glob)%s\0' "$glob" >>"$own/excludes"
        printf ':(top,glob)%s\0' "$glob" >>"$own/excluded"
    done
}

require_git() {
    command -v git >/dev/null 2>&1 || broke git 127
    version=$(git version) || return 0 # what ails it shows at once
    version=${version#git version }
    major=${version%%.*} minor=${version#*.}
    minor=${minor%%[!0-9]*}
    [ "$major" -gt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -ge 37 ]; } || broke git 1 git_too_old
}

# Who took the baseline may not have been told where it is.
find_lender() {
    lender_has_it=no
    if [ -n "$lender" ] || [ -z "$wanted_baseline" ]; then return; fi
    for store in "$home"/../clones/*/baseline.git; do
        if [ -d "$store" ] && ask /dev/null git --git-dir="$store" cat-file -e "$wanted_baseline^{tree}"; then
            lender=$(cd -P -- "$store" && printf '%s' "$PWD") && lender_has_it=yes && return
        fi
    done
}

# What lies outside the repository and is in no part: see siblings and work_trees.
report_outside() {
    beside=$(cd -P -- "$root_1" && printf '%s' "$PWD") || beside=
    case $top/ in "$beside"/*) beside= ;; esac
    case $beside/ in "$top"/*) beside= ;; esac
    { siblings && work_trees; } | lines | omit outside
}

# Beside the repository, where an agent starts. A link to a part is none.
siblings() {
    [ -n "$beside" ] || return 0
    for entry in "$beside"/* "$beside"/.[!.]* "$beside"/..?*; do
        [ -e "$entry" ] || [ -L "$entry" ] || continue
        [ "$(cd -P -- "$entry" && printf '%s' "$PWD")" = "$top" ] || printf '%s\0' "${entry##*/}"
    done
}

# Work trees of the repository that lie elsewhere: their branches are here, what is not committed in them is not.
work_trees() {
    [ -n "$common" ] || return 0
    for pointer in "$common"/worktrees/*/gitdir; do
        [ -f "$pointer" ] || continue
        IFS= read -r place <"$pointer" || continue
        place=$(cd -P -- "${pointer%/*}" && cd -P -- "${place%/.git}" && printf '%s' "$PWD") || continue
        case $place/ in "$top"/* | "${beside:-$top}"/*) ;; *) printf '%s\0' "$place" ;; esac
    done
}

capture_all() {
    number=0 queued=1 ignored=0 where=
    capture_part repository
    report_outside
    next=1
    [ -s "$own/queue" ] || return 0
    while line=$(sed -n "${next}p" "$own/queue") && [ -n "$line" ]; do
        next=$((next + 1)) where=${line#* }/
        plain=$(printf '%b.' "${line#* }")
        cd -P -- "$top/${plain%.}" && capture_part "${line%% *}"
    done
}

# Lists with bounds; what passes the bound is counted.
write_lists() {
    where='' empty=0
    { : >"$own/out/empty.z" && : >"$own/out/omitted.z"; } || broke sh 1
    if [ -s "$own/empty" ]; then
        awk -v most="$most_empty" 'NR > most' "$own/empty" | omit empty_directory
        awk -v most="$most_empty" 'NR <= most' "$own/empty" | zeros >"$own/out/empty.z" || broke sh $?
        empty=$(tr -cd '\0' <"$own/out/empty.z" | wc -c)
    fi
    [ ! -s "$own/omitted" ] || awk -v most="$most_omitted" 'NR <= most && length($0) < 4000' "$own/omitted" |
        while IFS= read -r line; do
            printf '%s\0%b\0' "${line%% *}" "${line#* }"
        done >"$own/out/omitted.z" || broke sh $?
    {
        printf 'sandferry-capture 1\nquiesce %s\n' "$quiesce"
        cat -- "$own/parts"
        [ ! -s "$own/omitted" ] || awk -v kinds="$kinds" '{ n[$1]++ }
            END { split(kinds, kind, " ")
                  for (i = 1; i in kind; i++) if (n[kind[i]]) print "omitted " kind[i] " " n[kind[i]] }' "$own/omitted"
        printf 'ignored %s\nempty %s\nend\n' "$ignored" $((empty))
    } >"$own/out/capture.txt" || broke sh $?
}

# The files with the answer, each after a line "file <name> <size>", if they are small; whoever gets it cut can still
# read them.
hand_over() {
    cd -P -- "$directory/out" && sizes=$(wc -c -- *) || return
    # shellcheck disable=SC2086
    set -- ${sizes##*"$nl"}
    [ "$1" -le "$most_handed" ] || return 0
    printf '%s\n' "$sizes" | while read -r size name; do
        case $name in
            capture.txt | total) ;;
            *) printf 'file %s %s\n' "$name" "$size" && { [ "$size" -eq 0 ] || cat -- "$name"; } ;;
        esac
    done
}
nl='
'

enter
make_own
keep_globs "$@"
require_git
find_lender
sweep
top=$PWD
[ "$quiesce" = none ] || pause
stage=archive
capture_all
resume
stage=publish
write_lists
ask /dev/null mv -- "$own/out" "$directory/out" || broke mv $?
rm -rf -- "$own" "$directory/stopped"
trap - EXIT
printf 'captured\n'
cat -- "$directory/out/capture.txt"
hand_over || :
