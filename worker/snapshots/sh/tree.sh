# shellcheck shell=sh disable=SC2034,SC2154
# Make a tree of all the files of a work tree, in a git directory of our own, as a capture does.
# Arguments: the work tree, the git directory to make, and "fresh" for a checkout just made.
# Prints "partial yes" if some file could not be read, and "tree <id>". Git's words go to stderr.
broke() { exit "$2"; }
omit() { cat >/dev/null; }
ask() {
    into=$1
    shift
    said=$("$@" 2>&1 >"$into")
    set -- $?
    [ -z "$said" ] || printf '%s\n' "$said" >&2
    return "$1"
}

cd -P -- "$1" || exit 1
work=$PWD store=$2 fresh=${3:-no} lender='' head=none said=''
locate
scratch "$store"
store=$(cd -P -- "$store" && pwd -P) || exit 1
own=$store/sandferry
mkdir -- "$own" && : >"$own/excludes" || exit 1
if [ -n "$theirs" ]; then head=$(git --git-dir="$theirs" rev-parse -q --verify HEAD) || head=none; fi

# A checkout that nobody but git has touched yet is what its index says, unless attributes change files on
# their way. (git would read all of it again: it trusts no entry of the second in which the index was written.)
load_index
if [ "$fresh" != fresh ] || grep -q '[	/]\.gitattributes$' "$own/index"; then
    place_gitlinks
    add_all
    [ "$partial" = no ] || printf 'partial yes\n'
fi
write_tree
rm -rf -- "$own"
printf 'tree %s\n' "$tree"
