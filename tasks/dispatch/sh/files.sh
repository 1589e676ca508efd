# shellcheck shell=sh disable=SC2154
# The package and the input of a call.

require() {
    for sf_program; do
        command -v "$sf_program" >/dev/null 2>&1 || refuse program_missing
    done
}

# packaged DIRECTORY SUM: the package is there and its files are what their list says, whose own sum is SUM.
packaged() {
    [ -f "$1/sums" ] || return 1
    sf_listed=$(sha256sum <"$1/sums") || return 1
    [ "${sf_listed%% *}" = "$2" ] || return 1
    # A package without files has an empty list, which sha256sum calls an error.
    [ ! -s "$1/sums" ] || (cd -- "$1" && sha256sum -c sums >/dev/null 2>&1)
}

# unpack DIRECTORY SUM ARCHIVE: into a directory of its own, then named; who comes second finds it there. The list
# of the files' sums comes on standard input.
unpack() {
    require tar sha256sum
    packaged "$1" "$2" && { rm -f -- "$3" && return; }
    sf_fresh=$3.d
    mkdir -p -- "$sf_fresh" || refuse file_denied
    tar -xf "$3" -C "$sf_fresh" || refuse archive_invalid
    cat >"$sf_fresh/sums" || refuse disk_full
    packaged "$sf_fresh" "$2" || refuse digest_mismatch
    chmod -R a-w "$sf_fresh/files" 2>/dev/null # a package may have no files
    rm -f -- "$3"
    if [ -e "$1" ] && ! packaged "$1" "$2"; then # spoilt
        mv -- "$1" "$sf_fresh.old" && discard "$sf_fresh.old"
    fi
    [ -e "$1" ] || mv -- "$sf_fresh" "$1" || refuse file_denied
    discard "$sf_fresh"
    discard "$1/${sf_fresh##*/}" # somebody else was first by a hair: then ours went into theirs
}

discard() {
    [ -e "$1" ] || return 0
    chmod -R u+w "$1" 2>/dev/null
    rm -rf -- "$1"
}

# stage_input: the input of this call, whole or not at all. A small one comes in the environment.
stage_input() {
    [ -d "$sf_work" ] || mkdir -p -- "$sf_work" || refuse file_denied
    if [ -n "${SANDFERRY_INPUT+set}" ]; then
        printf '%s' "$SANDFERRY_INPUT" >"$sf_work/input.$$"
    else
        cat >"$sf_work/input.$$"
    fi || refuse disk_full
    mv -f -- "$sf_work/input.$$" "$sf_work/input" || refuse file_denied
    [ "$sf_durable" = no ] || settle "$sf_work"
}
