# shellcheck shell=sh disable=SC2034,SC2154
# What the request takes in and leaves out beyond git's own rules. Pathspecs, NUL between: $own/includes (of
# ignored files) and $own/excludes (each with the magic `exclude`), $own/excluded (the same without).

# Excluded files are as they were in the baseline, whatever became of them.
leave_out() {
    [ -s "$own/excluded" ] || return 0
    xargs -0 git ls-files --others --modified --deleted --exclude-standard -z -- <"$own/excluded" | lines | sort -u |
        omit excluded
    or_empty "$1"
    put_back "$own/excluded" "$from"
}

# or_empty TREE: sets $from to it, or to the empty tree if that is none.
or_empty() {
    from=$1
    [ "$from" != none ] || from=$(git mktree </dev/null) || broke git $?
}

# put_back FILE TREE: what the pathspecs of FILE mean is in our index as TREE has it.
put_back() { ask /dev/null git reset -q --pathspec-from-file="$1" --pathspec-file-nul "$2" || broke git $?; }

# Nested repositories, too, are left out: drops them from $own/nested. git lists them like a directory or a gitlink.
leave_out_nested() {
    [ -s "$own/excluded" ] || return 0
    xargs -0 git ls-files --cached --others -z -- <"$own/excluded" | lines | sed 's|/$||' >"$own/names"
    minus "$own/names" <"$own/nested" >"$own/candidates"
    cat -- "$own/candidates" >"$own/nested"
}

# Ignored files that the request wants; nested repositories among them, which git lists as directories, become parts.
take_in() {
    [ -s "$own/includes" ] || return 0
    cat -- "$own/includes" "$own/excludes" | xargs -0 git ls-files --others --ignored --exclude-standard -z -- |
        lines >"$own/candidates"
    sed -n 's|/$||p' "$own/candidates" >>"$own/nested"
    sed '/\/$/d' "$own/candidates" >"$own/wanted"
    [ -s "$own/wanted" ] || return 0
    sed 's|^|./|' "$own/wanted" | zeros | xargs -0 sh -c "$oversize" sh "$cap" | lines | sed 's|^\./||' >"$own/names"
    omit too_large <"$own/names"
    minus "$own/names" <"$own/wanted" | sed 's/^/:(top,literal)/' | zeros >"$own/specs"
    add -f
    [ "$code" -le 1 ] || broke git "$code"
    [ "$code" -eq 0 ] || partial=yes
}
# shellcheck disable=SC2016
oversize='
cap=$1
shift
exec find "$@" -prune -type f -size "+${cap}c" -print0'

# How many ignored files are not taken.
count_ignored() {
    count=$(git ls-files --others --ignored --exclude-standard -z | tr -cd '\0' | wc -c)
    ignored=$((ignored + count))
}
