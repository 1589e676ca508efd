# shellcheck shell=sh disable=SC2154
# Enter the owner's directory, made by us and reached through no link, and look at what lies there.

enter() {
    [ ! -L "./$1" ] || refuse symlink
    [ -d "./$1" ] || mkdir -- "./$1" 2>/dev/null || [ -d "./$1" ] || { mkdir -- "./$1"; broke mkdir $?; }
    { [ ! -L "./$1" ] && cd -P -- "./$1"; } || refuse owner_directory
}

# What is in a checkout beside its commit.
holds="submodules=$submodules lfs=$lfs filter=$filter"

# The checkout that lies at the destination, if an earlier attempt of ours put it there: its record is
# found by its inode number, which rename(2) keeps.
recorded() {
    [ -d "./$name/.git" ] && [ ! -L "./$name" ] && [ ! -L "./$name/.git" ] || return 1
    record=$records/$key.$(inode "./$name")
    [ -f "$record/facts" ] || return 1
    { read -r old_url && read -r old_holds && read -r old_commit && read -r old_ref && read -r old_tree; } \
        <"$record/facts" || return 1
    [ "$old_url" = "$url" ] && [ "$old_holds" = "$holds" ]
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
mkdir -p -- "$repos" "$workspace" || broke mkdir $?
records=$scratch/clones
(umask 077 && mkdir -p -- "$records") || broke mkdir $?
cd -P -- "$repos" || refuse layout_invalid
here=$(pwd -P)
rest=$owner/
while [ -n "$rest" ]; do
    enter "${rest%%/*}"
    here=$here/${rest%%/*}
    rest=${rest#*/}
done
[ "$(pwd -P)" = "$here" ] || refuse owner_directory
! taken "$workspace/$name" || linked || refuse destination_taken

for stale in ".sandferry-staging-$attempt-"*; do
    [ ! -d "$stale" ] || [ -L "$stale" ] || rm -rf -- "./$stale" 2>/dev/null
done
mkdir -- "./$staging" || broke mkdir $?
trap 'rm -rf -- "./$staging"' EXIT
trap 'exit 143' HUP INT TERM
listing=$here/$staging/listing

if taken "./$name"; then
    recorded || refuse destination_taken
    stage clone
    commit=$(remote_commit) || { printf '%s\n' "$commit" && exit 1; }
    adopt "$commit"
fi
