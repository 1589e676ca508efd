"""git's own smart HTTP, run as the CGI program it is: ``git http-backend``."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import IO

CHUNK = 64 * 1024
"""Bytes that are passed on at once, at most."""

_VARIABLES = {
    "CONTENT_TYPE": "Content-Type",
    "HTTP_CONTENT_ENCODING": "Content-Encoding",
    "HTTP_GIT_PROTOCOL": "Git-Protocol",
    "GIT_PROTOCOL": "Git-Protocol",
}


@contextmanager
def backend(
    root: Path, method: str, path: str, *, query: str, headers: Message, body: IO[bytes]
) -> Iterator[tuple[int, dict[str, str], Iterator[bytes]]]:
    """Git's answer to one request below ``root``: status, headers, and the body as it comes.

    ``body`` is a file: a pipe would be written and read by turns, and both sides could wait for the other.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
    }
    environment |= {name: headers[header] for name, header in _VARIABLES.items() if header in headers}
    command = ["git", "http-backend"]
    with subprocess.Popen(command, stdin=body, stdout=subprocess.PIPE, env=environment, bufsize=0) as process:
        output = process.stdout
        if output is None:
            raise RuntimeError("git http-backend has no output")
        lines = itertools.takewhile(bytes.strip, output)
        fields = dict(line.decode().rstrip().split(": ", 1) for line in lines)
        status = int(fields.pop("Status", "200").split()[0])
        yield status, fields, iter(lambda: output.read(CHUNK), b"")
