# shellcheck shell=sh disable=SC2034
# (SC2034: used in the other files.)
# The launcher: POSIX sh for dash, bash and busybox. The worker runs the files of this folder as one script:
# prelude, files, processes, supervise, main. It answers in lines "<key> <value>"; after an empty line come bytes.
set -u
umask 077

mode=$1 self=$2 place=$3 nonce=$4 generation=$5
shift 5
work=$place/$nonce.$generation
claim=$place/claim.$generation

read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id || boot=none

say() { printf '%s\n' "$*"; }
refuse() { say "refused $1" && exit 0; }
nap() { sleep "$1" 2>/dev/null || sleep 1; }

# settle FILE: it is on the disk, or as near to it as this system says. (Older `sync` takes no names.)
settle() { sync "$1" 2>/dev/null || sync; }
