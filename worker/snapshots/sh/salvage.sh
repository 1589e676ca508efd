# shellcheck shell=sh disable=SC2034,SC2154
# A repository that git does not open, because its configuration or its HEAD is damaged or of a git to come.

# Its refs and objects, seen through a git directory of ours ($theirs, if that can be): with our configuration, and for
# the workspace itself with any HEAD. What else there was nobody knows, so it is reported all the same.
salvage() {
    [ -e .git ] || [ -L .git ] || return 0
    echo .git | omit broken_repository
    [ -n "$refused" ] && shared=$(shared_by "$refused") || return 0
    sight=$own/sight
    rm -rf -- "$sight"
    ask /dev/null mkdir -- "$sight" || broke mkdir $?
    for entry in "$shared/objects" "$shared/refs" "$shared/packed-refs" "$shared/logs" "$refused/index" \
        "$refused"/sharedindex.* "$refused"/rebase-* "$refused"/*_HEAD "$refused/BISECT_LOG"; do
        [ ! -e "$entry" ] || ask /dev/null ln -s -- "$entry" "$sight/" || broke ln $?
    done
    printf '%s\n' "$configuration" >"$sight/config" || broke sh 1
    ! grep -qi '^[[:space:]]*objectFormat *= *sha256' "$shared/config" ||
        printf '[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n' >>"$sight/config"
    cat -- "$refused/HEAD" >"$sight/HEAD"
    see || { [ "$kind" = repository ] && echo 'ref: refs/heads/sandferry' >"$sight/HEAD" && see; } || return 0
    theirs=$sight common=$shared
}

# Sets $format, if git opens $sight.
see() { format=$(git --git-dir="$sight" rev-parse --show-object-format 3>&-) || ! format=sha1; }
