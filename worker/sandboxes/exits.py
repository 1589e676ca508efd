"""What an exit code says. Pure."""

import signal

_USAGE = 129
"""Git's exit code for wrong usage; read as SIGHUP it would accuse a signal that nobody sent."""


def decode_exit(code: int) -> tuple[int | None, str | None]:
    """``(exit_code, signal)`` of a code as ``subprocess`` (``-n``) or a shell (``128 + n``) reports it.

    >>> decode_exit(1), decode_exit(-9), decode_exit(143)
    ((1, None), (None, 'SIGKILL'), (None, 'SIGTERM'))
    """
    number = -code if code < 0 else code - 128
    if code < 0 or (number > 0 and code != _USAGE):
        try:
            return None, signal.Signals(number).name
        except ValueError:
            pass
    return code, None
