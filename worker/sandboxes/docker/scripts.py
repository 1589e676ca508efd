"""What runs inside a container besides the command: POSIX ``sh`` for dash, bash and busybox.

Processes that Docker executes lead a session and a process group of their own, so ``-$$`` is the command and
all it started, unless a process left the group on purpose.
"""

_STAT = r"""
# born PID: sets $born to its start time (field 22), $group to its process group; fails for a zombie.
born() {
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  set -- ${stat##*) }
  group=$3 born=${20}
  [ "$1" != Z ] && [ "$1" != X ]
}
"""

WRAPPER = (
    _STAT
    + r"""
record=$1 seconds=$2 input=$3 dir=$4
shift 4
set -C # END may have been here first: then the record exists, and nothing begins
born $$ && first=$born && echo "$$ $first" 2>/dev/null >"$record" || {
  rm -f "$record"
  # In words of the C library, whatever sh this is; there are none if it was only that END had been here.
  said=$(cp "/proc/$$/stat" "$record" 2>&1) || echo "refused $record $said" >&2
  rm -f "$record"
  exit 125
}
set +C
# The second line of defence: the worker may die, its command may not outlive the deadline. A grandchild, so
# that the command has no child it did not start. It goes within a second of the command.
( (
  while [ "$seconds" -gt 0 ] && born $$ && [ "$born" = "$first" ]; do
    sleep 1
    seconds=$((seconds - 1))
  done
  rm -f "$record"
  [ "$seconds" -gt 0 ] || kill -KILL "-$$"
) </dev/null >/dev/null 2>&1 & )
exec <"$input" || exit 125
[ "$input" = /dev/null ] || rm -f "$input"
cd -- "$dir" || exit 126
unset OLDPWD
exec "$@"
"""
)
"""Arguments: record file, seconds, stdin file, directory, then the command.

Exits 125 when it cannot begin, 126 when the directory or the program cannot be used, 127 when there is no program. If
its record cannot be written it says so on stderr: ``refused``, the record, and why.
"""

END = (
    _STAT
    + r"""
record=$1 grace=$2 confirm=$3 sent= tries=20
until read -r leader first 2>/dev/null <"$record"; do
  (set -C; : >"$record") 2>/dev/null && { rm -f "$record.in"; exit 0; }
  [ "$tries" -gt 0 ] || exit 4
  tries=$((tries - 1))
  sleep 0.1 2>/dev/null || sleep 1
done
living() {
  born "$leader" && [ "$born" != "$first" ] && return 1
  for process in /proc/[0-9]*; do
    born "${process#/proc/}" && [ "$group" = "$leader" ] && return 0
  done
  return 1
}
# gone TENTHS: waits for the group's end.
gone() {
  left=$1
  while living; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 0.1 2>/dev/null || sleep 1
  done
}
living && kill -TERM "-$leader" 2>/dev/null && sent=SIGTERM
gone "$grace" || { kill -KILL "-$leader" 2>/dev/null; sent=SIGKILL; gone "$confirm" || exit 4; }
rm -f "$record" "$record.in"
echo "$sent"
"""
)
"""Arguments: record file, grace and confirmation in tenths of a second.

Exits 0 when the group is gone and prints the last signal it took; 4 when it does not go. Where there is no record it
makes one, and a command that has not begun yet will not.
"""

END_ALL = r"""
directory=$1 tag=$2 end=$3 grace=$4 confirm=$5 code=0
for record in "$directory/$tag".*; do
  case $record in *.in) continue ;; esac
  [ -e "$record" ] || continue
  # Empty: a command that is just beginning, or one that END kept from it.
  [ -s "$record" ] || sleep 0.2 2>/dev/null || sleep 1
  [ -s "$record" ] || continue
  /bin/sh -c "$end" sandferry "$record" "$grace" "$confirm" >/dev/null || code=4
done
rm -f "$directory/$tag".*.in
exit "$code"
"""
"""Arguments: directory of records, beginning of their names, :data:`END` and what it takes. Exits as END does."""

ALIVE = (
    _STAT
    + r"""
read -r leader first 2>/dev/null <"$1" && born "$leader" && [ "$born" = "$first" ]
"""
)
"""Arguments: record file. Succeeds while the command itself runs."""

LAYOUT = r"""
[ -e "$1" ] || [ -L "$1" ] || echo "$1"
shift
for dir; do
  if [ ! -e "$dir" ] && [ ! -L "$dir" ]; then
    echo "$dir"
  else
    [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] || exit 1
  fi
done
"""
"""Arguments: the workspace, then directories of ours. Prints those that are missing.

Exits 1 when one of ours is a link, no directory or another user's. The workspace may be anything: it is the user's.
"""

OOM = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null; :"
"""Prints the kernel's counters of this container, of cgroup v1 or v2. The engine reports its main process only."""

PLACE = r"""
[ ! -d "$2" ] && mv -f -- "$1" "$2" && exit
rm -f -- "$1"
[ ! -d "$2" ] || exit 21
exit 1
"""
"""Arguments: temporary file, destination. Renames, or removes the temporary file and exits 21 (EISDIR) or 1."""

READ = r"""
[ ! -d "$1" ] || exit 21
[ -e "$1" ] || exit 2
[ -r "$1" ] || exit 13
stat -Lc '%s %d:%i' -- "$1" >&2 || exit 1
tail -c "+$2" <"$1" 2>/dev/null | head -c "$3"
"""
"""Arguments: file, first byte counted from 1, bytes. Prints the part; to stderr the file's size and identity.

Exits with the errno's number when it cannot: 2, 13 or 21.
"""

MAIN = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
"""The container's own process: idle for ever, gone at once when the engine stops it."""
