# shellcheck shell=sh disable=SC2154
# Who is alive. A process is known by its id, the time it was born and the boot it was born in.

# born PID: sets $born to its start time (field 22 of its stat), $group to its group; fails for a zombie.
born() {
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    # The name may hold anything; the fields after its last ")" are fixed.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    group=$3 born=${20}
    [ "$1" != Z ] && [ "$1" != X ]
}

# same PID:START:BOOT: that very process still runs; sets $pid.
same() {
    pid=${1%%:*} since=${1#*:}
    [ "${since#*:}" = "$boot" ] && born "$pid" && [ "$born" = "${since%%:*}" ]
}

# living: the supervisor that holds the claim, or the tool it started.
living() {
    owner=$(readlink -- "$claim") && same "${owner#*:}" && return
    tool=$(readlink -- "$work/tool" 2>/dev/null) && same "$tool"
}

# peopled LEADER: a process of its group still runs.
peopled() {
    for process in /proc/[0-9]*; do
        born "${process#/proc/}" && [ "$group" = "$1" ] && return
    done
    return 1
}

# quell LEADER: ends the group: TERM, half a second, KILL, and sees it gone.
quell() {
    kill -TERM "-$1" 2>/dev/null
    for _ in 1 2 3 4 5; do
        peopled "$1" || return 0
        nap 0.1
    done
    kill -KILL "-$1" 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        peopled "$1" || return 0
        nap 0.5
    done
    return 1
}

# halt WHY: ends the tool of this call if it still runs, and says why.
halt() {
    tool=$(readlink -- "$work/tool" 2>/dev/null) && same "$tool" || return
    ln -s "$1" "$work/ended" 2>/dev/null
    quell "$pid"
}

# oom_kills: how many processes of this container the kernel has killed for memory (cgroup v2, v1).
oom_kills() {
    kills=0
    for counters in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$counters" ] || continue
        while read -r key count; do
            [ "$key" != oom_kill ] || kills=$((kills + count))
        done <"$counters"
    done
}
