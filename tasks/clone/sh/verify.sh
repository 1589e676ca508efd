# shellcheck shell=sh disable=SC2154
# What arrived must be what was asked for, whole, and must hold nothing of the credential.

stage verify
commit=$(in_work rev-parse -q --verify 'HEAD^{commit}') || commit=none
head=$(in_work symbolic-ref -q HEAD) || head=none

if [ "$commit" = none ]; then
    # An empty repository is a place to start; one with branches, but without the one its HEAD names, is not.
    git ls-remote -q -- "$url" </dev/null >"$listing" || broke git $?
    [ ! -s "$listing" ] || refuse default_branch_missing
fi

case $kind in
    branch) [ "$head" = "refs/heads/$ref" ] || refuse ref_missing ;;
    tag) head=refs/tags/$ref ;;
    commit) [ "$commit" = "$ref" ] || refuse head_mismatch ;;
esac

[ -z "$(in_work ls-files --deleted)" ] || refuse checkout_incomplete
[ ! -s "$work/.git/objects/info/alternates" ] || refuse borrowed_objects
[ -n "$filter" ] || ! ls "$work"/.git/objects/pack/*.promisor >/dev/null 2>&1 || refuse promisor_object

# Neither the token nor a password in a URL; the token is compared in the shell, not in an argv. A short one
# would be found in any text; as a password in a URL it is found anyway.
needle=${SANDFERRY_GIT_TOKEN:-}
[ "${#needle}" -ge 8 ] || needle='://no token'
find "$work/.git" -name config -type f >"$listing"
while IFS= read -r file; do
    case $(cat -- "$file") in
        *"$needle"* | *://*[!/]@*) refuse credential_persisted ;;
    esac
done <"$listing"
unset needle SANDFERRY_GIT_TOKEN SANDFERRY_GIT_USERNAME

mkdir -p -- "$work/.git/info" "$work/.git/hooks" || broke mkdir $?
