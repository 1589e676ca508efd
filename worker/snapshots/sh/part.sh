# shellcheck shell=sh disable=SC2034,SC2154
# One part: a repository, or the workspace if that is none.

# The work tree we stand in, as KIND. $where is its place in the workspace with a slash, empty for the workspace.
capture_part() {
    kind=$1 work=$PWD
    locate
    [ -n "$theirs" ] || salvage
    [ "$kind" != repository ] || [ -n "$theirs" ] || kind=directory
    # git takes the files of such a one for the outer repository's.
    [ "$kind" != nested ] || [ -n "$theirs" ] || return 0
    [ ! -d "$own/store" ] || rm -rf -- "$own/store"
    scratch "$own/store"
    printf '[core]\n\tfsync = none\n' >>"$GIT_DIR/config" || broke sh $? # objects that live for seconds
    place_base "$kind"
    borrow_refs
    load_index
    place_gitlinks
    walk
    set_large_apart
    add_all
    take_in
    report_left
    report_walk
    before=$baseline
    [ "$before" != none ] || before=$base_tree
    [ "$before" != none ] || [ "$head" = none ] || before=$(git rev-parse "$head^{tree}")
    leave_out "$before"
    write_tree
    count_ignored
    queue_nested
    choose_tips
    report_reflog
    choose_history
    write_part
}

# What changes are counted from: $base, $base_tree and $baseline, none where there is nothing to count from. $born
# is the time of the base, in epoch seconds.
place_base() {
    base=none base_tree=none baseline=none base_said=none
    case $1 in nested | submodule) return ;; esac
    if [ -n "$wanted_base" ]; then
        base_said=absent
        if ask "$own/answer" git show -s --format='%T %ct' "$wanted_base^{commit}"; then
            base=$wanted_base base_said=$wanted_base
            read -r base_tree born <"$own/answer" || broke git 0 malformed_answer
        fi
    fi
    if [ "$lender_has_it" = yes ] || { [ -n "$wanted_baseline" ] &&
        ask /dev/null git cat-file -e "$wanted_baseline^{tree}"; }; then baseline=$wanted_baseline; fi
    [ "$baseline" != none ] || baseline=$base_tree
}

# Nested repositories become parts of their own, submodules too.
queue_nested() {
    [ ! -s "$own/nested" ] || leave_out_nested
    while IFS= read -r name; do
        if [ "$queued" -ge "$most_parts" ]; then
            printf '%s\n' "$name" | omit too_many_parts && continue
        fi
        queued=$((queued + 1))
        if grep -qxF -e "$name" "$own/submodules"; then as=submodule; else as=nested; fi
        printf '%s %s%s\n' "$as" "$where" "$name" >>"$own/queue"
    done <"$own/nested"
}

# What one of its remotes has of a nested repository is not carried again: then the snapshot stands alone. A
# shallow one has no beginning that anybody could check.
choose_history() {
    case $kind in nested | submodule) ;; *) return 0 ;; esac
    [ "$head" != none ] || echo . | omit unborn_nested
    alone=no
    if ! is_local; then alone=yes
    elif [ -f "$GIT_DIR/shallow" ]; then alone=yes && echo . | omit history
    fi
    clean=no
    [ "$head" = none ] || [ "$(git rev-parse "$head^{tree}")" != "$tree" ] || clean=yes
    [ "$alone" = yes ] || return 0
    head=none
    : >"$own/tips"
}

# Nothing to say about a submodule whose commit its remote has and whose files are that commit's.
write_part() {
    if [ "$kind" = submodule ] && [ "$alone$clean" = yesyes ]; then return; fi
    bundle=$own/out/part-$number.bundle
    make_bundle "$bundle"
    measure "$bundle"
    plain=$(printf '%b.' "${where%/}")
    printf '%s' "${plain%.}" >"$own/out/part-$number.path" || broke sh $?
    on_branch=0
    [ "$branch" = none ] || on_branch=1
    printf 'part %s kind=%s format=%s snapshot=%s tree=%s baseline=%s base=%s head=%s branch=%s state=%s bundle=%s digest=%s\n' \
        "$number" "$kind" "$format" "$snapshot" "$tree" "$baseline" "$base_said" "$head" "$on_branch" "$(state)" \
        "$size" "$digest" >>"$own/parts" || broke sh $?
    number=$((number + 1))
}
