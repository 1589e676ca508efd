# shellcheck shell=sh
# Remove the staging directories that dead attempts of one task left beside its destination.
# Arguments: the directory of all checkouts, the owner below it, how the names start.
cd -P -- "$1" || exit 0
here=$(pwd -P)/$2
cd -P -- "./$2" && [ "$(pwd -P)" = "$here" ] || exit 0
for stale in "$3"*; do
    [ ! -d "$stale" ] || [ -L "$stale" ] || rm -rf -- "./$stale"
done
