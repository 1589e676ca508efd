# shellcheck shell=sh disable=SC2154,SC2016
# Clone into the staging directory. `git clone` for branches, as it is the fastest; it prefers a branch to a
# tag of the same name and cannot name a commit, so those two are fetched by their full names.

work=$here/$staging/$name
in_work() { git -C "$work" "$@" </dev/null; }

# An answer that is no git protocol at all reads as a repository without refs: git takes any text/plain for
# the list of a dumb server. What is empty in truth says so in packets.
spoken_git() {
    rm -f -- "$here/$staging/packets"
    GIT_TRACE_PACKET=$here/$staging/packets git ls-remote -q -- "$url" </dev/null >"$listing" || broke git $?
    [ -s "$here/$staging/packets" ] || refuse not_a_repository
}

# doubt REF: the remote seemed not to have it. Whether it was git that said so, and says so still: a proxy's page
# that came instead of an answer reads as an empty repository.
doubt() {
    spoken_git
    while read -r _ found; do
        [ "$found" != "$1" ] || refuse malformed_answer
    done <"$listing"
}

clone_branch() {
    stage clone
    set -- clone -q --template= --no-recurse-submodules
    [ "$kind" = default ] || set -- "$@" --branch="$ref"
    [ -z "$depth" ] || set -- "$@" --depth="$depth"
    [ -z "$filter" ] || set -- "$@" --filter="$filter"
    case $single in yes) set -- "$@" --single-branch ;; *) set -- "$@" --no-single-branch ;; esac
    git "$@" -- "$url" "$work" </dev/null || broke git $?
}

# Run as: start <hexadecimal id of the repository's object format>
start() {
    format=sha1
    [ "${#1}" -ne 64 ] || format=sha256
    git init -q --template= --object-format="$format" "$work" </dev/null || broke git $?
    in_work remote add -- origin "$url" || broke git $?
}

# Run as: fetch <refspec>...; all branches come too, unless one is enough.
fetch() {
    [ "$single" = yes ] || set -- "$@" '+refs/heads/*:refs/remotes/origin/*'
    [ -z "$filter" ] || in_work config remote.origin.partialclonefilter "$filter"
    in_work fetch -q ${depth:+"--depth=$depth"} ${filter:+"--filter=$filter"} origin -- "$@"
}

clone_tag() {
    stage fetch
    id=$(remote_commit) || { printf '%s\n' "$id" && exit 1; }
    if [ "$id" = none ]; then
        doubt "refs/tags/$ref"
        refuse ref_missing
    fi
    start "$id"
    fetch "+refs/tags/$ref:refs/tags/$ref" || broke git $?
    in_work rev-parse -q --verify "refs/tags/$ref^{commit}" >/dev/null 2>&1 || refuse not_a_commit
    detach "refs/tags/$ref^{commit}"
}

# The id itself first; a server that does not hand it out by id may still hold it on a branch or a tag.
clone_commit() {
    stage fetch
    start "$ref"
    fetch "$ref" 2>"$here/$staging/err" || {
        code=$?
        # An id of the other length than the repository's own.
        ! grep -q 'mismatched algorithms' "$here/$staging/err" || refuse commit_missing
        grep -Eqi 'not our ref|unadvertised object|find remote ref' "$here/$staging/err" ||
            { cat "$here/$staging/err" >&2 && broke git "$code"; }
        in_work fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*' || broke git $?
    }
    [ "$(in_work cat-file -t "$ref" 2>/dev/null)" = commit ] || refuse commit_missing
    detach "$ref"
}

detach() {
    stage checkout
    in_work checkout -q --detach "$1" || broke git $?
}

case $kind in
    tag) clone_tag ;;
    commit) clone_commit ;;
    *) clone_branch ;;
esac

# Whether some .gitmodules wants an update that git refuses: a command, or no word of its own.
strange_updates() {
    find "$work" -name .gitmodules -type f -exec git config --file {} \
        --get-regexp '^submodule\..*\.update$' '!^(checkout|rebase|merge|none)$' \; | grep -q .
}

if [ "$submodules" = yes ]; then
    stage submodules
    in_work submodule --quiet update --init --recursive || {
        code=$?
        ! strange_updates || refuse submodule_invalid
        broke git $code
    }
fi

# Fills one work tree, and names what stayed a pointer though the repository does not exclude it. The filter
# is in the checkout's own config, so that the agent's git knows its files as unchanged; without it
# `git lfs pull` does nothing, and says that all is well.
fill='
git lfs install --local --skip-repo >/dev/null && git lfs pull >/dev/null || exit
include=$(git config --file .lfsconfig lfs.fetchinclude) exclude=$(git config --file .lfsconfig lfs.fetchexclude)
git lfs ls-files --include="$include" --exclude="$exclude" | sed -n "s/^[0-9a-f]* - //p" |
    while IFS= read -r path; do git check-attr filter -- "$path"; done | sed -n "/: filter: lfs$/p"
'

# There is nothing to pull into an empty repository, and git-lfs fails at it.
if [ "$lfs" = yes ] && in_work rev-parse -q --verify HEAD >/dev/null; then
    stage lfs
    pointers=$(cd -- "$work" && sh -c "$fill" </dev/null) || broke git_lfs $?
    if [ "$submodules" = yes ]; then
        pointers=$pointers$(in_work submodule --quiet foreach --recursive "$fill") || broke git_lfs $?
    fi
    [ -z "$pointers" ] || refuse checkout_incomplete
    # An index written in the second of a file's change holds the file's contents in doubt, and without the
    # LFS filter they differ. One second later it does not.
    sleep 1
    in_work update-index -q --refresh
    in_work update-index --force-write-index || broke git $?
fi
