# shellcheck shell=sh disable=SC2154
# Record what was cloned and take its baseline while nobody else can see it; then let it appear, whole.

stage baseline
record=$records/$key.$(inode "$work")
rm -rf -- "$record"    # of a checkout that is gone: its inode number is ours now
(umask 077 && mkdir -- "$record") || broke mkdir $?
printf 'record %s\n' "${record##*.}"
tree=$(sh -c "$baseline_script" sandferry-baseline "$work" "$record/baseline.git" fresh "$here/$name/.git/objects") ||
    broke git $?
tree=${tree##*tree }
printf '%s\n' "$url" "$asked" "$commit" "$head" "$tree" >"$record/facts" || broke sh $?
bytes=$(du -sk "$work/.git") || broke sh $?

stage rename
# Still the same directories, none of them a link. All names below are relative to the one we stand in.
[ "$(cd -P -- "$repos" && cd -- "./$owner" && pwd -P)" = "$here" ] || refuse owner_directory
[ "$(pwd -P)" = "$here" ] || refuse owner_directory
# `mv` of a directory to a directory of the same name is rename(2) and no more: it never lands inside one
# that is there, and needs no -T.
if taken "./$name" || ! mv -f -- "./$staging/$name" ./ 2>"$listing"; then
    rm -rf -- "$record"
    taken "./$name" || { cat -- "$listing" >&2 && broke mv 1; }
    adopt "$commit"
fi
link
printf 'adopted no\n'
deliver "$commit" "$head" "$tree" "${bytes%%[!0-9]*}"
