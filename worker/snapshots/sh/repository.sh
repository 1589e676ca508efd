# shellcheck shell=sh disable=SC2034,SC2154
# Their repository, and one of our own over the same work tree.

# The work tree we stand in: its git directory ($theirs), the one that shares with others ($common), its object
# format. Empty where git would take nothing for a repository; $refused is then what should have been one.
locate() {
    unset GIT_DIR GIT_WORK_TREE
    theirs='' common='' refused='' format=sha1
    if [ -d .git ]; then
        theirs=$(cd -P -- .git && printf '%s' "$PWD")
    elif [ -f .git ]; then
        theirs=$(sed -n 's/^gitdir: //p' .git)
        theirs=$(cd -P -- "$theirs" && printf '%s' "$PWD")
    fi
    [ -n "$theirs" ] || return 0
    if format=$(git --git-dir="$theirs" rev-parse --show-object-format 3>&-); then common=$(shared_by "$theirs")
    else refused=$theirs theirs='' format=sha1
    fi
}

# The git directory that shares its objects and refs with the git directory $1: mostly itself.
shared_by() {
    if [ -f "$1/commondir" ]; then cd -P -- "$1" && cd -P -- "$(cat commondir)" && printf '%s' "$PWD"
    else printf '%s' "$1"
    fi
}

# A path as a line of objects/info/alternates.
alternate() {
    case $1 in *[\"\\]* | *"
"*) ;; *) printf '%s\n' "$1" && return ;; esac
    printf '"%s"\n' "$(printf '%s' "$1" | sed -e 's/["\\]/\\&/g' -e '$!s/$/\\n/' | tr -d '\n')"
}

# empty_store STORE FORMAT: what `git init` would make, without asking it.
empty_store() {
    ask /dev/null mkdir -p -- "$1/refs" "$1/info" "$1/objects/info" "$1/objects/pack" || broke mkdir $?
    { printf 'ref: refs/heads/sandferry\n' >"$1/HEAD" && printf '%s\n' "$configuration" >"$1/config"; } || broke sh 1
    [ "$2" = sha1 ] || printf '[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = %s\n' "$2" \
        >>"$1/config" || broke sh 1
}
# Names that fsck refuses are not added.
configuration='[core]
	repositoryFormatVersion = 0
	bare = false
	looseCompression = 0
	fsmonitor = false
	untrackedCache = false
	quotePath = false
	sparseCheckout = true
	protectHFS = true
	protectNTFS = true
	safecrlf = false
	hooksPath = /dev/null
	excludesFile = /dev/null
	attributesFile = /dev/null
[gc]
	auto = 0
[maintenance]
	auto = false'

# scratch STORE: a repository whose objects are theirs and, from $lender, the baseline's. It becomes $GIT_DIR.
scratch() {
    empty_store "$1" "$format"
    export GIT_DIR="$1" GIT_WORK_TREE="$work"
    for lent in "$common" "$lender"; do
        if [ -n "$lent" ] && [ -d "$lent/objects" ]; then alternate "$lent/objects"; fi
    done >"$1/objects/info/alternates" || broke sh $?
    [ -n "$theirs" ] || return 0
    # -p: the index's own time tells git which entries it must not trust.
    set --
    for file in "$theirs/index" "$theirs"/sharedindex.* "$common/shallow"; do
        [ ! -f "$file" ] || set -- "$@" "$file"
    done
    [ $# -eq 0 ] || ask /dev/null cp -p -- "$@" "$GIT_DIR/" || broke cp $?
    [ ! -f "$common/info/exclude" ] || ask /dev/null cp -- "$common/info/exclude" "$GIT_DIR/info/" || broke cp $?
}

# Their refs and HEAD, read without their objects; everything else asks our own repository. Sets $head (a commit
# that is there, or none) and $branch (the ref below refs/heads that HEAD stands for, or none).
borrow_refs() {
    head=none branch=none
    [ -n "$theirs" ] || return 0
    code=0
    ask "$GIT_DIR/packed-refs" git --git-dir="$theirs" for-each-ref --format='%(objectname) %(refname)' || code=$?
    case $code$said in
        0*) ;;
        *'fatal: unexpected line in '* | *'fatal: unterminated line in '*)
            : >"$GIT_DIR/packed-refs"
            echo .git/packed-refs | omit broken_repository && return 0
            ;;
        *) broke git "$code" ;;
    esac
    if [ -n "$said" ]; then
        printf '%s\n' "$said" | sed -n 's/^warning: ignoring broken ref //p' | omit missing_object
        printf '%s\n' "$said" | sed -n 's/^warning: ignoring ref with broken name //p' | omit other_ref
    fi
    # What git may not read of their refs it does not mention.
    ask /dev/null find "$common/refs" -type d || case $said in *': Permission denied'*) echo .git/refs | omit unreadable ;; esac
    if ! ask "$own/answer" git --git-dir="$theirs" rev-parse -q HEAD --symbolic-full-name HEAD; then
        ask "$own/answer" git --git-dir="$theirs" symbolic-ref -q HEAD && IFS= read -r branch <"$own/answer"
        case $branch in refs/heads/*) ;; *) branch=none ;; esac
        return 0
    fi
    # Beside a branch or tag that is called HEAD too, git does not give the name.
    { IFS= read -r head && IFS= read -r branch; } <"$own/answer" ||
        { ask "$own/answer" git --git-dir="$theirs" symbolic-ref -q HEAD && IFS= read -r branch <"$own/answer"; }
    case $branch in refs/heads/*) ;; *) branch=none ;; esac
    [ "$head" = "$base" ] || ask /dev/null git cat-file -e "$head^{commit}" || { echo HEAD | omit missing_object && head=none; }
}

# The operation of git that their repository is in the middle of.
state() {
    if [ -z "$theirs" ]; then echo none
    elif [ -f "$theirs/rebase-apply/applying" ]; then echo am
    elif [ -d "$theirs/rebase-merge" ] || [ -d "$theirs/rebase-apply" ]; then echo rebase
    elif [ -f "$theirs/MERGE_HEAD" ]; then echo merge
    elif [ -f "$theirs/CHERRY_PICK_HEAD" ]; then echo cherry_pick
    elif [ -f "$theirs/REVERT_HEAD" ]; then echo revert
    elif [ -f "$theirs/BISECT_LOG" ]; then echo bisect
    else echo none
    fi
}
