# shellcheck shell=sh disable=SC2016,SC2034,SC2154
# Lists of names. Between programs they are apart by NUL; while tools for lines work on them they are lines, in
# which \ is written \\ and a line end \n. Loops in the shell, because it takes any byte in a name.

# NUL -> lines.
lines() { xargs -0 -r sh -c "$escape" sh; }
escape='
nl="
"
for name; do
    case $name in
        *\\* | *"$nl"*)
            name=$(printf "%s." "$name" | sed -e "s/\\\\/\\\\\\\\/g" -e "\$!s/\$/\\\\n/" | tr -d "\n")
            name=${name%.}
            ;;
    esac
    printf "%s\n" "$name"
done'

# Lines -> NUL.
zeros() {
    while IFS= read -r name; do
        case $name in
            *\\*) printf '%b\0' "$name" ;;
            *) printf '%s\0' "$name" ;;
        esac
    done
}

# minus FILE: the lines of stdin that FILE does not have.
minus() {
    if [ -s "$1" ]; then awk 'NR == FNR { drop[$0]; next } !($0 in drop)' "$1" -; else cat; fi
}

# outside FILE: the lines of stdin that are no path below one of FILE's.
outside() {
    if [ ! -s "$1" ]; then cat && return; fi
    awk 'NR == FNR { root[$0]; next }
        { path = $0
          while (match(path, /\/[^\/]*$/)) { path = substr(path, 1, RSTART - 1); if (path in root) next }
          print }' "$1" -
}
