# shellcheck shell=sh disable=SC2034,SC2154
# What every git of ours stands on: nothing of the sandbox's environment, nothing of anybody's configuration.
# Needs git 2.37 and a POSIX (2024) userland: `find -print0`, `xargs -0 -r`.
set -u
umask 077
case $(export -p) in
    *GIT_*) for variable in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$variable"; done ;;
esac
unset CDPATH
export LC_ALL=C GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0
export GIT_TERMINAL_PROMPT=0 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1 GIT_ALLOW_PROTOCOL=none
