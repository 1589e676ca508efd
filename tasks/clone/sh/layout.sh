# shellcheck shell=sh disable=SC2154
# Enter the owner's directory, made by us and reached through no link, and look at what lies there.

root() {
    said=$(mkdir -p -- "$@" 2>&1) && return
    code=$?
    case $said in *'Not a directory'* | *'File exists'*) refuse layout_invalid ;; esac
    printf '%s\n' "$said" >&2
    broke mkdir $code
}

# From the root of all checkouts down to the owner's directory. Returns 1 if a directory went away on the
# way: a clone beside us that fails takes its empty ones with it.
descend() {
    cd -P -- "$repos" || refuse layout_invalid
    here=$(pwd -P) rest=$owner/ keys=$owner_keys made=0
    while [ -n "$rest" ]; do
        enter "${rest%%/*}" "${keys%% *}" || return 1
        here=$here/${rest%%/*} rest=${rest#*/} keys=${keys#* }
    done
}

# One component down; $2 starts the name of the record of a checkout that lies there. Never into a checkout:
# what we put there would be a change of its work tree.
enter() {
    [ ! -L "./$1" ] || refuse symlink
    if [ ! -d "./$1" ]; then
        ! taken "./$1" || refuse owner_directory
        if mkdir -- "./$1" 2>/dev/null; then
            made=$((made + 1))
        else
            [ -d "./$1" ] || { mkdir -- "./$1"; broke mkdir $?; }
        fi
    fi
    ! taken "./$1/.git" || refuse owner_directory
    [ ! -d "$records/$2.$(inode "./$1")" ] || refuse owner_directory
    [ ! -L "./$1" ] || return 1
    cd -P -- "./$1" 2>/dev/null || return 1
}

# Take away what is ours alone; an owner's directory only if we made it and nothing is in it.
leave() {
    rm -rf -- "./$staging"
    while [ "$made" -gt 0 ]; do
        below=${here##*/} here=${here%/*} made=$((made - 1))
        cd -P .. && rmdir -- "./$below" 2>/dev/null || return
    done
}

# All that a request says of a checkout beside its URL.
asked="$kind=$ref depth=$depth single=$single submodules=$submodules lfs=$lfs filter=$filter"

# The checkout that lies at the destination, if an earlier attempt of ours put it there: its record is
# found by its inode number, which rename(2) keeps.
recorded() {
    [ -d "./$name/.git" ] && [ ! -L "./$name" ] && [ ! -L "./$name/.git" ] || return 1
    record=$records/$key.$(inode "./$name")
    [ -f "$record/facts" ] || return 1
    { read -r old_url && read -r old_asked && read -r old_commit && read -r old_ref && read -r old_tree; } \
        <"$record/facts" || return 1
    [ "$old_url" = "$url" ] && [ "$old_asked" = "$asked" ]
}

# Take over the destination if it is ours and holds commit $1, and end.
adopt() {
    { recorded && [ "$old_commit" = "$1" ]; } || refuse destination_taken
    [ "$1" = none ] || GIT_DIR="./$name/.git" git cat-file -e "$1^{commit}" 2>/dev/null || refuse destination_taken
    bytes=$(du -sk "./$name/.git") || broke sh $?
    link
    printf 'adopted yes\n'
    deliver "$old_commit" "$old_ref" "$old_tree" "${bytes%%[!0-9]*}"
}

# Where agents start. `ln` into a directory never descends further, and never replaces anything.
link() {
    stage link
    taken "$workspace/$name" || ln -s -- "$here/$name" "$workspace/" 2>/dev/null ||
        taken "$workspace/$name" || { ln -s -- "$here/$name" "$workspace/"; broke ln $?; }
    linked || refuse destination_taken
}
linked() { [ -L "$workspace/$name" ] && [ "$(readlink "$workspace/$name")" = "$here/$name" ]; }

deliver() {
    printf 'commit %s\nref %s\ntree %s\nkibibytes %s\ndone yes\n' "$1" "$2" "$3" "$4"
    exit 0
}

# What the remote says the wanted ref is, without fetching it; nothing if it says nothing.
remote_commit() {
    case $kind in
        commit) printf '%s\n' "$ref" && return ;;
        branch) wanted=refs/heads/$ref ;;
        tag) wanted=refs/tags/$ref ;;
        *) wanted=HEAD ;;
    esac
    git ls-remote -q -- "$url" "$wanted" "$wanted^{}" </dev/null >"$listing" || broke git $?
    while read -r id found; do
        case $found in "$wanted") commit=$id ;; "$wanted^{}") commit=$id && break ;; esac
    done <"$listing"
    printf '%s\n' "${commit:-none}"
}

stage layout
records=$scratch/clones made=0
root "$repos" "$workspace"
umask 077
root "$records"
umask 022
trap leave EXIT
trap 'exit 143' HUP INT TERM
descend || descend || refuse owner_directory
[ "$(pwd -P)" = "$here" ] || refuse owner_directory
! taken "$workspace/$name" || linked || refuse destination_taken

for stale in ".sandferry-staging-$attempt-"*; do
    [ ! -d "$stale" ] || [ -L "$stale" ] || rm -rf -- "./$stale" 2>/dev/null
done
mkdir -- "./$staging" 2>/dev/null || { descend && mkdir -- "./$staging"; } || broke mkdir $?
listing=$here/$staging/listing

if taken "./$name"; then
    recorded || refuse destination_taken
    stage clone
    commit=$(remote_commit) || { printf '%s\n' "$commit" && exit 1; }
    adopt "$commit"
fi
