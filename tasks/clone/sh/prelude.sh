# shellcheck shell=sh disable=SC2034,SC2012
# (SC2034: used in the other files. SC2012: `ls -di` is the POSIX way to an inode; the number comes first.)
# The worker runs the files of this folder as one script: prelude, layout, fetch, verify, publish.
# It talks to the worker in lines "<key> <value>" on stdout; stderr is private.
set -u
umask 022

# What the sandbox's environment says is not ours: a trace prints credentials, a config or a proxy redirects
# them, SSLKEYLOGFILE gives them away. What is listed finds programs, or is ours. First of all, as a name of
# it may be one of the script's own variables. (The last ones are bash's own; it does not let go of them.)
for variable in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case $variable in
        PATH | LD_LIBRARY_PATH | TMPDIR | TZ | PWD | LC_ALL | LANG | HOME) ;;
        SANDFERRY_GIT_USERNAME | SANDFERRY_GIT_TOKEN) ;;
        GIT_CONFIG_COUNT | GIT_CONFIG_KEY_* | GIT_CONFIG_VALUE_* | GIT_CONFIG_GLOBAL | GIT_CONFIG_NOSYSTEM) ;;
        GIT_ATTR_NOSYSTEM | GIT_TERMINAL_PROMPT | GIT_ASKPASS | SSH_ASKPASS | GIT_SSH_COMMAND) ;;
        GIT_NO_LAZY_FETCH | GIT_LFS_SKIP_SMUDGE) ;;
        BASHOPTS | SHELLOPTS | BASH_VERSINFO | UID | EUID | PPID) ;;
        *) unset "$variable" ;;
    esac
done

kind=$1 ref=$2 url=$3 depth=$4 single=$5 submodules=$6 lfs=$7 filter=$8
shift 8
repos=$1 workspace=$2 scratch=$3 owner=$4 name=$5 key=$6 owner_keys=$7 attempt=$8
shift 8
staging=$1 baseline_script=$2

stage() { printf 'stage %s\n' "$1"; }
refuse() { printf 'refused %s\n' "$1" && exit 1; }                # we know why
broke() { printf 'program %s\nexit %s\n' "$1" "$2" && exit 1; }    # stderr knows why
taken() { [ -e "$1" ] || [ -L "$1" ]; }
inode() { ls -di -- "$1" | sed 's/^ *//; s/ .*//'; }

stage version
command -v git >/dev/null 2>&1 || refuse program_missing
version=$(git version) || broke git $?
version=${version#git version }
major=${version%%.*} minor=${version#*.}
minor=${minor%%[!0-9]*}
[ "$major" -gt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -ge 37 ]; } || refuse git_too_old
[ "$lfs" = no ] || git lfs version >/dev/null 2>&1 || refuse lfs_missing
