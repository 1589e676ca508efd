# shellcheck shell=sh disable=SC2154
# What arrived must be what was asked for, whole, and must hold nothing of the credential.

stage verify
commit=$(in_work rev-parse -q --verify 'HEAD^{commit}') || commit=none
head=$(in_work symbolic-ref -q HEAD) || head=none

if [ "$commit" = none ]; then
    # An empty repository is a place to start; one with branches, but without the one its HEAD names, is not.
    doubt HEAD
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

# Neither the token nor a password in a URL. The token is compared in the shell, not in an argv; a short one
# would be found in any text.
needle=${SANDFERRY_GIT_TOKEN:-}
# Whether a URL holds a password, or a token of GitHub or GitLab for a user name.
reveals() {
    authority=${1#*://}
    [ "$authority" != "$1" ] || return 1
    authority=${authority%%[/?#]*}
    case ${authority%@*}@ in
        "$authority@") return 1 ;;
        *:?*@ | gh[psour]_* | github_pat_* | glpat-*) ;;
        *) return 1 ;;
    esac
}
# What a config says that could be a credential: a key and a value a line.
entries='^(credential\..*|http\..*extraheader|url\..*|.*url)$'
find "$work/.git" -name config -type f >"$here/$staging/configs"
while IFS= read -r file; do
    # Not a branch of that name.
    if [ ! -f "${file%/*}/HEAD" ] || [ ! -d "${file%/*}/objects" ] || [ ! -d "${file%/*}/refs" ]; then continue; fi
    if [ "${#needle}" -ge 8 ]; then
        case $(cat -- "$file") in *"$needle"*) refuse credential_persisted ;; esac
    fi
    git config --no-includes --file "$file" --get-regexp "$entries" >"$listing"
    [ $? -le 1 ] || refuse credential_persisted
    while IFS= read -r entry; do
        case $entry in credential.* | http.*extraheader\ *) refuse credential_persisted ;; esac
        if reveals "${entry#* }" || reveals "${entry%% *}"; then refuse credential_persisted; fi
    done <"$listing"
done <"$here/$staging/configs"
unset needle SANDFERRY_GIT_TOKEN SANDFERRY_GIT_USERNAME

mkdir -p -- "$work/.git/info" "$work/.git/hooks" || broke mkdir $?
