# shellcheck shell=sh disable=SC2154
# Runs after tree.sh. Keep what the tree is made of, whatever becomes of the user's repository, and let the
# store borrow the objects that come later. Argument: where those will lie, if not where they lie now.
later=${4:-$common/objects}

# Hard links cost nothing and outlive a gc or a removal of the repository. Where there can be none
# (another file system), or where objects lie loose, they are copied.
linked=yes
if [ -n "$common" ]; then
    for file in "$common"/objects/pack/pack-*.pack "$common"/objects/pack/pack-*.idx; do
        [ ! -f "$file" ] || ln -- "$file" "$store/objects/pack/" 2>/dev/null || linked=no
    done
    for directory in "$common"/objects/[0-9a-f][0-9a-f]; do
        [ ! -d "$directory" ] || linked=no
    done
fi
if [ "$linked" = no ]; then
    git rev-list --objects --missing=allow-any "$tree" |
        git pack-objects -q --missing=allow-any "$store/objects/pack/pack" >/dev/null || exit
fi
git update-ref refs/sandferry/baseline "$tree" || exit
printf '%s\n' "$later" >"$store/objects/info/alternates"
