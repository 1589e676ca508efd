# shellcheck shell=sh disable=SC2034,SC2154
# Stop the processes that could change files, and let them go on again whatever happens. The list of the stopped
# is a file, so that a worker can wake them after a helper that was killed.

# Sets $parent, $group and $born of a process from /proc/PID/stat (fields 4, 5 and 22), and $condition.
status_of() {
    line=$(cat "/proc/$1/stat") || return 1
    # shellcheck disable=SC2086
    set -- ${line##*) }
    [ $# -ge 20 ] || return 1
    condition=$1 parent=$2 group=$3 born=${20}
}

# Ourselves, our group and our ancestors: the drivers' own processes.
spare_ourselves() {
    status_of $$ || return 1
    ours=$group spared=" 1 $$ " process=$parent
    while [ "$process" -gt 1 ] && status_of "$process"; do
        spared="$spared$process " process=$parent
    done
}

# Whether a process may be stopped: of our user, and, if the scope is a home directory, started with that one.
may_stop() {
    case $spared in *" $1 "*) return 1 ;; esac
    [ -O "/proc/$1" ] && status_of "$1" && [ "$group" != "$ours" ] || return 1
    case $condition in [TtZX]) return 1 ;; esac
    [ "$scope" != home ] || tr '\0' '\n' <"/proc/$1/environ" | grep -qxF "HOME=$HOME"
}

# Processes that start others may escape one round, not many.
pause() {
    spare_ourselves || { quiesce=none && return; }
    rounds=5
    while [ "$rounds" -gt 0 ]; do
        rounds=$((rounds - 1)) news=no
        for process in ${pids:-/proc/[0-9]*}; do
            process=${process#/proc/}
            may_stop "$process" || continue
            # Written first: one that is woken for nothing does not mind.
            printf '%s %s\n' "$process" "$born" >>"$directory/stopped" || broke sh 1
            stopped=yes
            kill -s STOP "$process" && news=yes
        done
        [ "$news" = yes ] || break
    done
    [ -n "$stopped" ] || : >"$directory/stopped"
}

# Wake what DIRECTORY's capture stopped, if it is the same process still.
wake() {
    [ -f "$1/stopped" ] || return 0
    while read -r process when; do
        status_of "$process" && [ "$born" = "$when" ] && kill -s CONT "$process"
    done <"$1/stopped"
    rm -f -- "$1/stopped"
    return 0
}

resume() {
    [ -z "$stopped" ] || wake "$directory"
    stopped=
}

# What earlier attempts of this operation left, and anybody else's after a day.
sweep() {
    for old in "$home/$key".*; do
        [ "$old" != "$directory" ] || continue
        [ ! -d "$old" ] || { wake "$old" && rm -rf -- "$old"; }
    done
    [ "$(echo "$home"/*)" != "$directory" ] || return 0
    find "$home/." ! -name . -prune -type d -mtime +0 -print0 | lines >"$own/old"
    while IFS= read -r old; do wake "$old" && rm -rf -- "$old"; done <"$own/old"
}
