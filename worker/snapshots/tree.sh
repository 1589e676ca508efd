# shellcheck shell=sh
# Make a tree of all the files of a work tree, in a git directory of our own.
# Arguments: the work tree, the git directory to make, and "fresh" for a checkout just made.
# Prints "partial yes" if some file could not be read, and "tree <id>".
#
# Nothing of the user's .git is changed, and nothing it says is done: no config, hook, filter, fsmonitor or
# rule of ownership applies. Needs git 2.37.
set -u
for variable in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
export LC_ALL=C GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1
export GIT_TERMINAL_PROMPT=0 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1

cd -P -- "$1" || exit 1
work=$(pwd -P)
store=$2
fresh=${3:-no}

# Their git directory, and the one it shares with other work trees; empty if there is none.
theirs='' common=''
if [ -d .git ]; then
    theirs=$work/.git
elif [ -f .git ]; then
    theirs=$(sed -n 's/^gitdir: //p' .git)
    theirs=$(cd -P -- "$theirs" && pwd -P) || exit 1
fi
if [ -n "$theirs" ]; then
    common=$theirs
    [ ! -f "$theirs/commondir" ] || common=$(cd -P -- "$theirs" && cd -P -- "$(cat commondir)" && pwd -P) || exit 1
fi

format=sha1
[ -z "$common" ] || format=$(git config -f "$common/config" extensions.objectFormat) || format=sha1
git init -q --bare --template= -b main --object-format="$format" "$store" || exit
store=$(cd -P -- "$store" && pwd -P) || exit 1
mkdir -p -- "$store/info" "$store/objects/info"
cat >>"$store/config" <<'CONFIG'
[core]
	bare = false
	fsmonitor = false
	untrackedCache = false
	quotePath = false
	sparseCheckout = true
	hooksPath = /dev/null
	excludesFile = /dev/null
	attributesFile = /dev/null
[gc]
	auto = 0
[maintenance]
	auto = false
CONFIG
export GIT_DIR="$store" GIT_WORK_TREE="$work"

if [ -n "$theirs" ]; then
    printf '%s\n' "$common/objects" >"$store/objects/info/alternates"
    # -p: the index's own time tells git which entries it must not trust.
    for file in "$theirs/index" "$theirs"/sharedindex.* "$common/shallow"; do
        [ ! -f "$file" ] || cp -p -- "$file" "$store/" || exit 1
    done
    [ ! -f "$common/info/exclude" ] || cp -- "$common/info/exclude" "$store/info/" || exit 1
fi

list=$store/sandferry-list
if ! git ls-files -v --stage >"$list" 2>/dev/null; then
    rm -f -- "$store/index" "$store"/sharedindex.*
    head=$(GIT_DIR=$theirs git rev-parse -q --verify 'HEAD^{tree}') && { git read-tree "$head" || exit; }
    git ls-files -v --stage >"$list" || exit
fi
gitlinks=$(sed -n 's/^. \(160000 [0-9a-f]* 0	\)/\1/p' "$list")
if grep -q '^[a-z]' "$list"; then
    git ls-files -z | git update-index -z --no-assume-unchanged --stdin || exit
fi

# Nested repositories are no part of this tree; git lists them as directories. Names are kept apart by NUL,
# so line ends in them change places with it while a tool for lines looks at them.
nested() {
    git ls-files --others --exclude-standard -z | tr '\n\0' '\0\n' |
        sed -n 's|^\(.*\)/$|:(exclude,top,literal)\1|p' | tr '\n\0' '\0\n'
}

# Put every file into the index. One that vanishes on the way ends `git add` with 128, and the add is
# repeated; unreadable ones end it with 1.
add_all() {
    tries=3
    until
        { printf ':/\0' && nested; } >"$list"
        git add -A --sparse --ignore-errors --pathspec-from-file="$list" --pathspec-file-nul
        code=$?
        tries=$((tries - 1))
        [ "$code" -le 1 ] || [ "$tries" -eq 0 ]
    do :; done
    [ "$code" -le 1 ] || exit "$code"
    [ "$code" -eq 0 ] || printf 'partial yes\n'
}

# A checkout that nobody but git has touched yet is what its index says, unless attributes change files on
# their way. (git would read all of it again: it trusts no entry of the second in which the index was written.)
if [ "$fresh" != fresh ] || grep -q '[	/]\.gitattributes$' "$list"; then
    add_all
fi

# A submodule that is not checked out is not a submodule that was removed.
printf '%s\n' "$gitlinks" | while IFS= read -r entry; do
    path=${entry#*	}
    [ -z "$entry" ] || [ -e "./$path" ] || [ -L "./$path" ] || printf '%s\n' "$entry"
done >"$list"
[ ! -s "$list" ] || git update-index --index-info <"$list" || exit

rm -f -- "$list"
tree=$(git write-tree --missing-ok) || exit
printf 'tree %s\n' "$tree"
