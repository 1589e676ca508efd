# shellcheck shell=sh disable=SC2034,SC2154
# Remove captures: one by its name, or all of an operation by its key. Arguments: the directory where captures
# are made, the name or key.
for old in "$1/$2" "$1/$2".*; do
    if [ -d "$old" ]; then wake "$old" && rm -rf -- "$old"; fi
done
