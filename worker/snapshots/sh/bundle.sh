# shellcheck shell=sh disable=SC2034,SC2154
# The bundle of a part. We write its header: `git bundle create` drops refs that the base reaches, and what it
# must not send again it asks of commits only.

# A commit with our identity, of the time $when, on stdout's file $own/answer: TREE PARENT|none MESSAGE.
commit_tree() {
    parent=
    [ "$2" = none ] || parent="-p $2"
    # shellcheck disable=SC2086
    ask "$own/answer" env GIT_AUTHOR_NAME=Sandferry GIT_AUTHOR_EMAIL=sandferry@localhost TZ=UTC \
        GIT_COMMITTER_NAME=Sandferry GIT_COMMITTER_EMAIL=sandferry@localhost \
        ${when:+"GIT_AUTHOR_DATE=@$when +0000"} ${when:+"GIT_COMMITTER_DATE=@$when +0000"} \
        git commit-tree "$1" $parent -m "$3" || broke git $?
    IFS= read -r commit <"$own/answer" || broke git 0 malformed_answer
}

# Snapshot, baseline, HEAD, then the tips, as lines "<id> <name>" into $own/refs. Sets $snapshot.
name_refs() {
    commit_tree "$tree" "$head" 'Sandferry snapshot'
    snapshot=$commit
    printf '%s snapshot\n' "$snapshot" >"$own/refs"
    if [ "$baseline" != none ] && [ "$baseline" != "$base_tree" ]; then
        commit_tree "$baseline" none 'Sandferry baseline'
        printf '%s baseline\n' "$commit" >>"$own/refs"
    fi
    [ "$head" = none ] || printf '%s head\n' "$head" >>"$own/refs"
    [ ! -s "$own/tips" ] || cat -- "$own/tips" >>"$own/refs"
}

# Header and pack into FILE; its status is that of the pack.
write_bundle() {
    : >"$own/needs"
    [ "$base" = none ] || echo "$base" >"$own/needs"
    shallow_roots >>"$own/needs"
    {
        if [ "$format" = sha1 ]; then echo '# v2 git bundle'; else printf '# v3 git bundle\n@object-format=%s\n' "$format"; fi
        while read -r id; do printf '%s\n' "-$id base"; done <"$own/needs"
        sed 's| | refs/sandferry/|' "$own/refs"
        printf '\n'
    } >"$1" || broke sh 1
    # The base's tree is named too: what hangs on no commit of the base's is still not sent twice.
    {
        cut -d ' ' -f 1 "$own/refs"
        while read -r id; do printf '%s\n' "^$id"; done <"$own/needs"
        [ "$base" = none ] || echo "^$base_tree"
    } >"$own/specs"
    # Not thin: the worker has no base to complete it with. A list of ids instead of --revs: what the base has
    # already is sent when it is an old side, so that the worker can tell what changed. No deltas are looked for:
    # that would take far longer than sending what they save, and the same objects always make the same pack.
    { said=$(git rev-list --objects --stdin <"$own/specs" 2>&1 >"$own/objects" 3>&-) || return; }
    add_old_sides || return
    choose_compression
    said=$(git pack-objects -q --window=0 --compression="$level" --delta-base-offset --stdout \
        <"$own/objects" 2>&1 >>"$1" 3>&-)
}

# Adds to $own/objects the trees and files that the change replaces: the tree it is counted from, and all that is gone
# from it; no files if these are more than 64 MiB together. What a partial clone never had is no part of them.
# Leaves in $own/names the ids of new files, one for each 512 KiB there are, at most 32, spread evenly.
add_old_sides() {
    : >"$own/raw" && : >"$own/names"
    [ "$baseline" = none ] ||
        said=$(git diff-tree -r -t --raw --no-renames --no-abbrev "$baseline" "$tree" 2>&1 >"$own/raw" 3>&-) || return
    awk -v baseline="$baseline" '
        /^:/ { if ($1 != ":160000" && $1 != ":000000") print $3 " old"; next }
        { print $1 " new" }
        END { if (baseline != "none") print baseline " old" }' "$own/objects" "$own/raw" |
        git cat-file --batch-check='%(objecttype) %(objectname) %(objectsize) %(rest)' >"$own/sizes" || return
    SAMPLES=$own/names awk '
        $1 == "blob" && $4 == "old" { old[o++] = $2; replaced += $3; next }
        $1 == "blob" { id[n++] = $2; bytes += $3; next }
        $4 == "old" { print $2 }
        END { if (replaced <= 67108864) for (i = 0; i < o; i++) if (!seen[old[i]]++) print old[i]
              most = int(bytes / 524288); if (most > 32) most = 32
              for (i = 0; most && i < n; i += int(n / most) + 1) print id[i] >ENVIRON["SAMPLES"] }' \
        "$own/sizes" >>"$own/objects"
}

# Sets $level: 0 if the beginnings of the files $own/names would hardly get smaller, which takes a second for 30 MB to
# find out; else zlib's fastest. Of a few files the first ones stand for all: starting programs takes longer.
choose_compression() {
    level=1 count=0
    while read -r id; do count=$((count + 1)); done <"$own/names"
    [ "$count" -gt 0 ] || return 0
    if [ "$count" -le 8 ]; then git cat-file --batch <"$own/names" | head -c $((count * 65536))
    else while read -r id; do git cat-file blob "$id" | head -c 65536; done <"$own/names"
    fi >"$own/sample"
    id=$(git -c core.looseCompression=1 hash-object -w --no-filters -- "$own/sample") || return 0
    echo "$id" | git cat-file --batch-check='%(objectsize) %(objectsize:disk)' >"$own/answer"
    read -r whole packed <"$own/answer" || return 0
    [ "$((packed * 10))" -lt "$((whole * 9))" ] || level=0
}

# A bundle with as much of the history as there is: all, if need be with objects made of the files once more; without
# refs that are not whole; or only the files.
make_bundle() {
    name_refs
    write_bundle "$1" && return
    give_up_on_objects $?
    make_objects_again
    write_bundle "$1" && return
    give_up_on_objects $?
    keep_whole_tips
    name_refs
    write_bundle "$1" && return
    give_up_on_objects $?
    cut -d ' ' -f 2 "$own/tips" | omit missing_object
    echo HEAD | omit missing_object
    : >"$own/tips"
    head=none
    name_refs
    write_bundle "$1" || give_up_on_objects $? final
}

# Contents of files that lie there, into our own store, where git looks first: theirs may be damaged, and as long as it
# sees them git writes no others.
make_objects_again() {
    mv -- "$GIT_DIR/objects/info/alternates" "$own/alternates" || broke mv $?
    # shellcheck disable=SC2016
    git ls-files -z | xargs -0 -r sh -c '
        for name; do
            [ ! -f "$name" ] || [ -L "$name" ] || printf "%s\0" "$name"
        done' sh | xargs -0 -r git hash-object -w -- >"$own/answer"
    mv -- "$own/alternates" "$GIT_DIR/objects/info/alternates" || broke mv $?
}

keep_whole_tips() {
    beyond=
    [ "$base" = none ] || beyond=^$base
    while read -r tip ref; do
        # shellcheck disable=SC2086
        if git rev-list --quiet --objects "$tip" $beyond; then printf '%s %s\n' "$tip" "$ref"
        else printf '%s\n' "$ref" | omit missing_object
        fi
    done <"$own/tips" >"$own/names"
    cat -- "$own/names" >"$own/tips"
}

# STATUS: end, unless all that is wrong is that objects are missing or damaged.
give_up_on_objects() {
    known=$(printf '%s\n' "$said" | errno_in)
    [ "$known" = ' object_corrupt' ] || broke git "$1"
    [ $# -eq 1 ] && return
    [ -z "$common" ] || ! git config -f "$common/config" --get-regexp '^remote\..*\.promisor$' >/dev/null ||
        broke git "$1" promisor_object
    broke git "$1" object_corrupt
}

# Sets $size (bytes) and $digest of FILE: git's own SHA-256, as not every image has sha256sum.
measure() {
    size=$(wc -c <"$1") || broke wc $?
    size=$((size))
    [ -d "$own/digest" ] || empty_store "$own/digest" sha256
    ask "$own/answer" git --git-dir="$own/digest" hash-object --no-filters -- "$1" || broke git $?
    IFS= read -r digest <"$own/answer" || broke git 0 malformed_answer
}
