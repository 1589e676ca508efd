# shellcheck shell=sh disable=SC2034,SC2154
# Symbolic links that no worker takes in.

# Links that lead out of the work tree, new ones or changed, are as they were before. What the worker says of them
# (worker/imports/links.py) counts; this is to let the rest of the work pass.
leave_links() {
    [ "$links" = leave ] || return 0
    if [ "$base" = none ]; then or_empty none; else or_empty "$baseline"; fi
    compare "$from" || return 0 # objects are missing; what follows finds out which
    grep -q '^:[0-7]* 120000 ' "$own/raw" || return 0
    entries 120000 |
        awk 'NR == FNR { if ($2 == "120000") new[$4]; next } $2 in new' "$own/raw" - >"$own/candidates"
    while IFS= read -r entry; do
        path=${entry#*	} id=${entry#120000 }
        id=${id%% *}
        target=$(git cat-file blob "$id" && echo .) || continue
        ! leads_out "${target%.}" "$path" || printf '%s\n' "$path"
    done <"$own/candidates" >"$own/names"
    [ -s "$own/names" ] || return 0
    omit unsafe_link <"$own/names"
    sed 's/^/:(top,literal)/' "$own/names" | zeros >"$own/specs"
    put_back "$own/specs" "$from"
    write_tree
}

# leads_out TARGET PATH: whether a link at PATH may lead out of the tree, or into a .git. Behind a name, `..` may undo
# another link.
leads_out() {
    case $1 in '' | /*) return 0 ;; esac
    [ "${#1}" -le 4096 ] || return 0
    left=0 rest=$2
    while [ "$rest" != "${rest#*/}" ]; do left=$((left + 1)) rest=${rest#*/}; done
    named=no rest=$1/
    while [ -n "$rest" ]; do
        step=${rest%%/*} rest=${rest#*/}
        case $step in
            '' | .) continue ;;
            ..)
                if [ "$named" = yes ] || [ "$left" -eq 0 ]; then return 0; fi
                left=$((left - 1))
                continue
                ;;
        esac
        named=yes
        while [ "$step" != "${step%[ .]}" ]; do step=${step%[ .]}; done
        case ${step%%:*} in .[gG][iI][tT] | [gG][iI][tT]~1) return 0 ;; esac
    done
    return 1
}

# compare TREE: what changed from TREE to $tree into $own/raw.
compare() {
    [ "$compared" != "$1 $tree" ] || return 0
    compared=''
    said=$(git diff-tree -r -t --raw --no-renames --no-abbrev "$1" "$tree" 2>&1 >"$own/raw" 3>&-) || return
    compared="$1 $tree"
}
