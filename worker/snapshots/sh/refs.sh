# shellcheck shell=sh disable=SC2034,SC2154
# Which commits go with a snapshot: every local branch, tag and stash that the base does not reach.

# Lines "<id> <name below refs/sandferry>" into $own/tips; $base is a commit that is there, or none. The branch
# that HEAD stands for is always among them, and first. As many as the worker takes (worker/imports/header.py).
choose_tips() {
    : >"$own/tips"
    stashed=no
    [ -s "$GIT_DIR/packed-refs" ] || return 0
    beyond_base
    [ "$base" = none ] || ! grep -q ' refs/tags/' "$GIT_DIR/packed-refs" || tags_of_our_time >>"$own/beyond"
    : >"$own/names"
    OTHERS=$own/names awk -v branch="$branch" '
        function tip(id, name) {
            if (seen[id, name]++) return
            bytes += length(id) + length(name) + 20
            if (++count > 9000 || bytes > 900000 || length(name) > 1000) print name >ENVIRON["OTHERS"]
            else print id " " substr(name, 6)
        }
        NF == 2 && $2 == branch { tip($1, $2) }
        NF > 2 && $NF !~ /^refs\/(heads\/|tags\/|remotes\/|stash$)/ { print $NF >ENVIRON["OTHERS"] }
        NF < 3 || $NF !~ /^refs\/(heads|tags)\// { next }
        $1 == "commit" || $1 == "tagged" { tip($2, $3) }
        $1 == "tag" && ($2 == "commit" || $2 == "tag") { tip($3, $4) }' "$GIT_DIR/packed-refs" "$own/beyond" >"$own/tips"
    stashes >>"$own/tips"
    omit other_ref <"$own/names"
}

# Lines "<type> [<type of what it tags>] <id> <name>" into $own/beyond, of the refs that the base does not reach; of
# all, if a damaged history hides which those are, and then the names of all.
beyond_base() {
    fields='%(objecttype) %(*objecttype) %(objectname) %(refname)'
    [ "$base" = none ] || ! git for-each-ref --no-merged="$base" --format="$fields" >"$own/beyond" || return 0
    {
        git for-each-ref --format="$fields" refs/heads refs/tags
        git for-each-ref --format='any - %(refname)'
    } >"$own/beyond"
}

# Lines "tagged <id> <name>": annotated tags on what the base reaches, if they are no older than the base: those
# came with no clone.
tags_of_our_time() {
    git for-each-ref --merged="$base" --format='%(taggerdate:unix) %(objectname) %(refname)' refs/tags |
        awk -v born="$born" 'NF == 3 && $1 + 0 >= born + 0 { print "tagged " $2 " " $3 }'
}

# The stack of stashes, newest first, as git counts them.
stashes() {
    grep -q ' refs/stash$' "$GIT_DIR/packed-refs" || return 0
    stashed=yes
    ask "$own/answer" git --git-dir="$theirs" rev-list --walk-reflogs refs/stash -- || : >"$own/answer"
    [ -s "$own/answer" ] || sed -n 's| refs/stash$||p' "$GIT_DIR/packed-refs" >"$own/answer"
    awk '{ print $1 " stash/" NR - 1 }' "$own/answer"
}

# Commits that only a reflog remembers are not taken: amended, rebased or reset away, most of them on purpose.
report_reflog() {
    [ -n "$theirs" ] || return 0
    : >"$own/names"
    [ "$stashed" = no ] || sed -n 's|^\([0-9a-f]*\) stash/.*|^\1|p' "$own/tips" >"$own/names"
    git --git-dir="$theirs" rev-list --reflog --not --all --not --stdin <"$own/names" | omit reflog_only
}

# Whether any of $own/tips or $head is on none of the remotes.
is_local() {
    {
        cut -d ' ' -f 1 "$own/tips"
        [ "$head" = none ] || echo "$head"
    } >"$own/names"
    [ -n "$(git rev-list -n 1 --stdin --not --remotes <"$own/names")" ]
}

# The roots of a shallow history: their parents are nowhere, so a bundle can only start above them.
shallow_roots() {
    [ -f "$GIT_DIR/shallow" ] || return 0
    {
        cut -d ' ' -f 1 "$own/refs"
        [ "$base" = none ] || echo "^$base"
    } >"$own/specs"
    git rev-list --max-parents=0 --stdin <"$own/specs" | awk 'NR == FNR { cut[$1]; next } $1 in cut' "$GIT_DIR/shallow" -
}
