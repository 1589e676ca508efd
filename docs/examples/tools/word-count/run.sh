#!/bin/sh
# A read tool: the arguments come as JSON on standard input, the answer goes as JSON to standard output.
set -eu
path=$(sed -n 's/.*"path": *"\([A-Za-z0-9_.\/-]*\)".*/\1/p')
set -- "$(wc -l <"$path")" "$(wc -w <"$path")" "$(wc -c <"$path")"
printf '{"lines": %d, "words": %d, "bytes": %d}\n' "$1" "$2" "$3"
