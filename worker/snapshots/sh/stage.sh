# shellcheck shell=sh disable=SC2034,SC2154
# Every file of the work tree into our index, and a tree of it.

# Their index, made honest: entries that git was told to look away from are looked at.
load_index() {
    if ! ask "$own/index" git ls-files -v --stage; then
        rm -f -- "$GIT_DIR/index" "$GIT_DIR"/sharedindex.*
        [ "$head" = none ] || ask /dev/null git read-tree "$head" || broke git $?
        ask "$own/index" git ls-files -v --stage || broke git $?
    fi
    unmerged=no gitlinks=no
    grep -q -e '^[a-z]' -e '^. 160000 ' -e '^. [0-9]* [0-9a-f]* [123]' "$own/index" || return 0
    ! grep -q '^. [0-9]* [0-9a-f]* [123]' "$own/index" || unmerged=yes
    ! grep -q '^. 160000 ' "$own/index" || gitlinks=yes
    if grep -q '^[a-z]' "$own/index"; then
        git ls-files -z >"$own/names" || broke git $?
        said=$(git update-index -z --no-assume-unchanged --stdin <"$own/names" 2>&1 3>&-) || broke git $?
    fi
}

# entries MODE: lines "MODE <id> 0<tab><name>", the entries of our index that have it.
entries() { git ls-files --stage -z | tr '\n\0' '\0\n' | sed -n "/^$1 /p" | tr '\n\0' '\0\n' | lines; }

# Submodules: one that is checked out is its HEAD, one that is not is what the index says. git itself would run
# `git status`, with their configuration and into their index, so it is kept away from them. A directory that is
# no repository any more is its files, and what a link took the place of is gone. Leaves names in $own/apart; those checked out in $own/submodules too.
place_gitlinks() {
    : >"$own/apart" && : >"$own/submodules"
    [ "$gitlinks" = yes ] || return 0
    entries 160000 >"$own/gitlinks"
    while IFS= read -r entry; do
        path=${entry#*	} known=${entry#160000 }
        known=${known%% *}
        plain=$(printf '%b.' "$path")
        plain=./${plain%.}
        if is_linked; then continue
        elif [ -e "$plain/.git" ]; then
            printf '%s\n' "$path" | tee -a "$own/submodules" >>"$own/apart"
            commit=$(git --git-dir="$plain/.git" rev-parse -q --verify HEAD) || continue
            [ ${#commit} -eq ${#known} ] || continue # of another object format: no tree of ours can name it
            printf '160000 %s 0\t%s\0' "$commit" "${plain#./}"
        elif [ -d "$plain" ] && [ ! -L "$plain" ] && [ -n "$(ls -A -- "$plain")" ]; then
            printf '0 %s\t%s\0' "$known" "${plain#./}"
        elif [ -d "$plain" ] || { [ ! -e "$plain" ] && [ ! -L "$plain" ]; }; then
            printf '%s\n' "$path" >>"$own/apart"
            printf '%s\n' "$path" | omit absent_submodule
        fi
    done <"$own/gitlinks" >"$own/index"
    said=$(git update-index -z --index-info <"$own/index" 2>&1 3>&-) || broke git $?
}

# Whether $plain, or a directory above it, is a symbolic link.
is_linked() {
    above=${plain%/*}
    [ ! -L "$plain" ] || return 0
    place=$(cd -P -- "$above" && printf '%s.' "$PWD") && [ "$place" != "$work${above#.}." ]
}

# Nested repositories, which git lists as directories, as pathspecs.
apart_from_nested() {
    # shellcheck disable=SC2016
    git ls-files --others --exclude-standard -z | xargs -0 -r sh -c '
        for name; do
            case $name in */) printf ":(exclude,top,literal)%s\0" "${name%/}" ;; esac
        done' sh
}

# `git add` of $own/specs; sets $code. git gives up on a file that is not in the encoding which attributes ask for, and
# on an attribute that names none: then files are taken as they are.
add() {
    code=0
    ask /dev/null git add "$1" --sparse --ignore-errors --pathspec-from-file="$own/specs" --pathspec-file-nul || code=$?
    [ "$code" -gt 1 ] && [ ! -f "$GIT_DIR/info/attributes" ] || return 0
    case $said in
        *'fatal: BOM is '* | *"fatal: failed to encode '"* | *"fatal: encoding '"* | *'valid working-tree-encodings'*)
            echo '* !working-tree-encoding' >"$GIT_DIR/info/attributes" || broke sh 1
            add "$1"
            ;;
    esac
}

# Put every file into the index. One that vanishes on the way ends `git add` with 128, and the add is repeated,
# at last without those that vanished; ones that cannot be read end it with 1. Sets $partial.
add_all() {
    tries=3 partial=no
    : >"$own/vanished"
    while :; do
        write_specs
        add -A
        [ "$code" -gt 1 ] || break
        tries=$((tries - 1))
        printf '%s\n' "$said" | sed -n "s/\\\\/&&/g; s/^fatal: unable to stat '\(.*\)': .*/\1/p" >>"$own/vanished"
        [ "$tries" -eq 0 ] || continue
        case $said in
            *'unable to stat '* | *': No such file or directory'*) broke git "$code" files_changing ;;
            *) broke git "$code" ;;
        esac
    done
    [ "$code" -eq 0 ] || partial=yes
    [ "$tries" -gt 1 ] || sort -u "$own/vanished" | omit vanished
}

# The pathspecs of `git add` into $own/specs.
write_specs() {
    {
        printf ':/\0'
        apart_from_nested
        : >"$own/names"
        [ ! -s "$own/apart" ] || cat -- "$own/apart" >"$own/names"
        [ "$tries" -gt 1 ] || cat -- "$own/vanished" >>"$own/names"
        [ ! -s "$own/names" ] || sed 's/^/:(exclude,top,literal)/' "$own/names" | zeros
        [ ! -s "$own/excludes" ] || cat -- "$own/excludes"
    } >"$own/specs" || broke sh 1
}

# Sets $tree. What was in conflict and kept away from the add is their side's version.
write_tree() {
    : >"$own/names"
    [ "$unmerged" = no ] || ask "$own/names" git ls-files --unmerged -z || broke git $?
    if [ -s "$own/names" ]; then
        tr '\n\0' '\0\n' <"$own/names" | sed 's/^\([0-7]* [0-9a-f]*\) [123]	/\1 0	/' | tr '\n\0' '\0\n' >"$own/index"
        said=$(git update-index -z --index-info <"$own/index" 2>&1 3>&-) || broke git $?
    fi
    ask "$own/answer" git write-tree --missing-ok || broke git $?
    IFS= read -r tree <"$own/answer" || broke git 0 malformed_answer
}
