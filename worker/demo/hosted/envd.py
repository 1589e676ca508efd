"""envd, E2B's daemon in a sandbox: the Connect protocol with its JSON codec, and files over HTTP."""

import base64
import json
import os
import selectors
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

from worker.demo.hosted.machine import Machine
from worker.demo.hosted.web import Reply, Request

_CHUNK = 65536
_PROCESSES: dict[int, "subprocess.Popen[bytes]"] = {}
_KEEPALIVE = 5.0
"""Seconds of silence after which a stream says that it lives."""


def reply(request: Request, machine: Machine) -> Reply:
    """Answer one request to envd."""
    if request.path == "/files":
        return _read(request) if request.method == "GET" else _write(request)
    match request.path.rpartition(".")[2]:
        case "Process/Start":
            return _start(request, machine)
        case "Process/SendSignal":
            return _signal(request)
        case "Process/List":
            running = [{"pid": pid, "config": {"cmd": "/bin/bash"}} for pid in _PROCESSES]
            return Reply.json(200, {"processes": running})
        case "Filesystem/Stat":
            return _stat(request.json()["path"])
        case "Filesystem/MakeDir":
            return _make_dir(request.json()["path"])
    return _error(404, "unimplemented", "no such method")


def _error(status: int, code: str, message: str) -> Reply:
    return Reply.json(status, {"code": code, "message": message})


def _start(request: Request, machine: Machine) -> Reply:
    (size,) = struct.unpack(">xI", request.body[:5])
    wanted = json.loads(request.body[5 : 5 + size])["process"]
    timeout = request.headers.get("connect-timeout-ms")
    end = time.monotonic() + int(timeout) / 1000 if timeout else None
    argv = [wanted["cmd"], *wanted.get("args", [])]
    process = machine.start(argv, wanted.get("envs"), wanted.get("cwd") or None)
    _PROCESSES[process.pid] = process
    return Reply(200, _events(process, end), {"Content-Type": "application/connect+json"})


def _events(process: "subprocess.Popen[bytes]", end: float | None) -> Iterator[bytes]:
    """The stream of a process. Its reader may leave: the process lives on, as envd has it."""
    yield _envelope({"event": {"start": {"pid": process.pid}}})
    late = False
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map() and not late:
            left = _KEEPALIVE if end is None else min(_KEEPALIVE, max(0.0, end - time.monotonic()))
            ready = selector.select(left)
            late = end is not None and time.monotonic() >= end
            if not ready and not late:
                yield _envelope({"event": {"keepalive": {}}})
            for key, _ in ready:
                if data := os.read(key.fd, _CHUNK):
                    yield _envelope({"event": {"data": {key.data: base64.b64encode(data).decode()}}})
                else:
                    selector.unregister(key.fileobj)
    _PROCESSES.pop(process.pid, None)
    if late:
        process.kill()
        process.wait()
        yield _envelope({"error": {"code": "deadline_exceeded", "message": "the command timed out"}}, last=True)
        return
    code = process.wait()
    ended = {"exitCode": code if code >= 0 else -1, "exited": code >= 0, "status": f"exit status {code}"}
    yield _envelope({"event": {"end": ended}})
    yield _envelope({}, last=True)


def _envelope(value: dict[str, Any], *, last: bool = False) -> bytes:
    data = json.dumps(value).encode()
    return struct.pack(">BI", 2 if last else 0, len(data)) + data


def _signal(request: Request) -> Reply:
    wanted = request.json()
    process = _PROCESSES.get(wanted["process"]["pid"])
    if process is None:
        return _error(404, "not_found", f"process with pid {wanted['process']['pid']} not found")
    process.send_signal(getattr(signal, wanted["signal"].removeprefix("SIGNAL_")))
    return Reply.json(200, {})


def _stat(name: str) -> Reply:
    path = Path(name)
    if not path.exists():
        return _error(404, "not_found", f"file not found: {name}")
    about, kind = path.stat(), "DIRECTORY" if path.is_dir() else "FILE"
    entry = {"name": path.name, "path": name, "type": f"FILE_TYPE_{kind}", "size": str(about.st_size),
             "mode": about.st_mode & 0o777, "permissions": "", "owner": "user", "group": "user"}  # fmt: skip
    return Reply.json(200, {"entry": entry})


def _make_dir(name: str) -> Reply:
    if Path(name).exists():
        return _error(409, "already_exists", "it is there")
    Path(name).mkdir(parents=True)
    return Reply.json(200, {})


def _read(request: Request) -> Reply:
    path = Path(request.query["path"])
    if path.is_dir():
        return Reply.json(400, {"code": 400, "message": f"path '{path}' is a directory"})
    if not path.is_file():
        return Reply.json(404, {"code": 404, "message": f"path '{path}' does not exist"})
    return Reply(200, pieces(path), {"Content-Type": "application/octet-stream"})


def pieces(path: Path) -> Iterator[bytes]:
    """A file, piece by piece."""
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            yield data


def _write(request: Request) -> Reply:
    path = Path(request.query["path"])
    data = request.body
    if request.headers.get_content_type() == "multipart/form-data":
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        parts = [part for part in message_from_bytes(head + request.body).walk() if not part.is_multipart()]
        data = bytes(parts[0].get_payload(decode=True) or b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Reply.json(200, [{"name": path.name, "type": "file", "path": str(path)}])
