# shellcheck shell=sh disable=SC2154
# Who is alive. A process is known by its id, the time it was born and the boot it was born in.

# born PID: sets $sf_born to its start time (field 22 of its stat), $sf_group to its group; fails for a zombie.
born() {
    read -r sf_stat 2>/dev/null <"/proc/$1/stat" || return 1
    # The name may hold anything; the fields after its last ")" are fixed.
    # shellcheck disable=SC2086
    set -- ${sf_stat##*) }
    sf_group=$3 sf_born=${20}
    [ "$1" != Z ] && [ "$1" != X ]
}

# same PID:START:BOOT: that very process still runs; sets $sf_pid.
same() {
    sf_pid=${1%%:*} sf_since=${1#*:}
    [ "${sf_since#*:}" = "$sf_boot" ] && born "$sf_pid" && [ "$sf_born" = "${sf_since%%:*}" ]
}

# living: the supervisor that holds the claim, or the tool it started.
living() {
    sf_owner=$(readlink -- "$sf_claim") && same "${sf_owner#*:}" && return
    sf_tool=$(readlink -- "$sf_work/tool" 2>/dev/null) && same "$sf_tool"
}

# peopled LEADER: a process of its group still runs.
peopled() {
    for sf_process in /proc/[0-9]*; do
        born "${sf_process#/proc/}" && [ "$sf_group" = "$1" ] && return
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
    sf_tool=$(readlink -- "$sf_work/tool" 2>/dev/null) && same "$sf_tool" || return
    ln -s "$1" "$sf_work/ended" 2>/dev/null
    quell "$sf_pid"
}

# oom_kills: how many processes of this container the kernel has killed for memory (cgroup v2, v1).
oom_kills() {
    sf_kills=0
    for sf_counters in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$sf_counters" ] || continue
        while read -r sf_key sf_count; do
            [ "$sf_key" != oom_kill ] || sf_kills=$((sf_kills + sf_count))
        done <"$sf_counters"
    done
}
