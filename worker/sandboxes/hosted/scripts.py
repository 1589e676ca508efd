"""What runs inside a hosted sandbox. Scripts travel in an environment variable: no quoting, no long process list."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

VARIABLE = "SANDFERRY_LAUNCHER"
LAUNCHER = Path(__file__).with_name("launcher.sh").read_text(encoding="ascii")
"""See the file."""

INLINE = 48 * 1024
"""Bytes that ride in an environment variable as base64: Linux allows 128 KiB for one (``MAX_ARG_STRLEN``)."""
TEXT = 96 * 1024
"""Bytes of a command that ride in one as they are."""

_PATH = "PATH=$PATH:/usr/local/bin:/usr/bin:/bin\n"
"""The sandbox may have any."""

LAYOUT = (
    _PATH
    + r"""
home=${HOME-}
[ -n "$home" ] || home=$(cd ~ && pwd) || exit 1
for tool in base64 find setsid; do
  command -v "$tool" >/dev/null || exit 3
done
umask 022
for dir in "$home/workspace" "$home/repos"; do
  mkdir "$dir" 2>/dev/null
done
umask 077
for dir in "$home/.sandferry" "$home/.sandferry/exec" "$home/.sandferry/exec/run" "$home/.sandferry/exec/up"; do
  mkdir "$dir" 2>/dev/null
done
for dir in "$home/repos" "$home/.sandferry" "$home/.sandferry/exec" "$home/.sandferry/exec/run" \
  "$home/.sandferry/exec/up"; do
  [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] || exit 1
done
[ -d "$home/workspace" ] || exit 1
[ -z "${SANDFERRY_ENV-}" ] || printf '%s\n' "$SANDFERRY_ENV" >"$home/.sandferry/exec/env" || exit 1
printf 'home %s\n' "$(cd "$home" && pwd -P)"
"""
)
"""Makes the layout and prints where. ``SANDFERRY_ENV`` is what every command's environment starts with.

Exits 1 when a directory of ours is a link, no directory or another user's, 3 when a tool is missing.
"""

PLACE = (
    _PATH
    + r"""
file=$1 dir=$2 name=$3 mode=$4 new=$2/.sandferry-$5
[ ! -d "$dir/$name" ] || { rm -f -- "$file"; exit 21; }
[ -d "$dir" ] || { rm -f -- "$file"; exit 2; }
trap 'rm -f -- "$new" "$file"' EXIT
umask 077
if [ -f "$file" ]; then
  mv -f -- "$file" "$new" || exit 1
else
  printf %s "$SANDFERRY_DATA" | base64 -d >"$new" || exit 1
fi
chmod "$mode" "$new" && mv -f -- "$new" "$dir/$name"
"""
)
"""Arguments: uploaded file, directory, name, octal mode, nonce. Renames into place, or exits with an errno or 1.

Where there is no uploaded file, the content is ``SANDFERRY_DATA``, base64. ``mv`` twice: the first may have to copy.
"""

WHY = r"""
[ ! -d "$1" ] || exit 21
[ -e "$1" ] || exit 2
[ -r "$1" ] || exit 13
[ -s "$1" ] || exit 10
"""
"""Argument: a file that could not be read. Exits with the errno's number, 10 when it is empty (which an SDK takes
for a failure), or 0 when nothing is wrong with it."""


def invocation(*args: str) -> str:
    """The command that runs the script in :data:`VARIABLE` with ``args``."""
    return f"exec /bin/sh -c 'eval \"${VARIABLE}\"' sandferry {shlex.join(args)}"


def exports(env: Mapping[str, str]) -> str:
    """Shell text that sets the variables, one a line."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in env.items())


def job(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Shell text that sets the environment and the positional parameters to the command."""
    return f"{exports(env)}\nset -- {shlex.join(argv)}"
