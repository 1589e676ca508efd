#!/bin/sh
# A read tool: the arguments come as JSON on standard input, the answer goes as JSON to standard output.
set -eu
path=$(sed -n 's/.*"path": *"\([A-Za-z0-9_.\/-]*\)".*/\1/p')
lines=$(wc -l <"$path") words=$(wc -w <"$path") bytes=$(wc -c <"$path")
printf '{"lines": %d, "words": %d, "bytes": %d}\n' "$lines" "$words" "$bytes"
