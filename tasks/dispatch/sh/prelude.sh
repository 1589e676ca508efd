# shellcheck shell=sh disable=SC2034
# (SC2034: used in the other files.)
# The launcher: POSIX sh for dash, bash and busybox. The worker runs the files of this folder as one script:
# prelude, files, processes, supervise, main. Its variables begin with sf_, so that none of the tool's environment is
# touched. It answers in lines "<key> <value>"; after an empty line come bytes.
set -u
umask 077

sf_mode=$1 sf_self=$2 sf_place=$3 sf_nonce=$4 sf_generation=$5
shift 5
sf_work=$sf_place/$sf_nonce.$sf_generation
sf_claim=$sf_place/claim.$sf_generation

read -r sf_boot 2>/dev/null </proc/sys/kernel/random/boot_id || sf_boot=none

say() { printf '%s\n' "$*"; }
refuse() { say "refused $1" && exit 0; }
nap() { sleep "$1" 2>/dev/null || sleep 1; }

# settle FILE: it is on the disk, or as near to it as this system says. (Older `sync` takes no names.)
settle() { sync "$1" 2>/dev/null || sync; }
