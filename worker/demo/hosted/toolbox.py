"""The toolbox, Daytona's daemon in a sandbox: commands, sessions and files."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email import message_from_bytes
from pathlib import Path
from typing import Any

from worker.demo.hosted.envd import pieces
from worker.demo.hosted.machine import Machine
from worker.demo.hosted.web import Reply, Request

DEFAULT_TIMEOUT = 10
"""Seconds of a command whose request names none (``ExecuteRequest``)."""
_SESSIONS: dict[str, dict[str, dict[str, Any]]] = {}


def reply(request: Request, machine: Machine, rest: list[str]) -> Reply:
    """Answer one request to the toolbox; ``rest`` is its path."""
    match (request.method, rest):
        case ("POST", ["process", "execute"]):
            return _execute(request.json(), machine)
        case ("POST", ["process", "session"]):
            _SESSIONS[request.json()["sessionId"]] = {}
            return Reply.json(201, {})
        case (_, ["process", "session", session, *more]):
            return _session(request, machine, session, more)
        case ("POST", ["files", "bulk-upload"]):
            return _upload(request)
        case ("POST", ["files", "bulk-download"]):
            return _download(request.json()["paths"])
        case ("POST", ["git", "clone"]):
            return _clone(request.json(), machine)
        case ("GET", ["user-home-dir" | "work-dir"]):
            return Reply.json(200, {"dir": str(machine.home)})
    return error(404, "not found")


def error(status: int, message: str, code: str | None = None) -> Reply:
    """An error as the daemon writes it."""
    body = {"statusCode": status, "message": message, "source": "DAYTONA_DAEMON", "path": "", "method": ""}
    return Reply.json(status, body | ({"code": code} if code else {}))


def _run(
    command: str, machine: Machine, env: Mapping[str, str] | None, cwd: str | None, timeout: float | None
) -> "tuple[int, bytes, bytes] | None":
    """Exit code, stdout, stderr; ``None`` when it was ended at its time."""
    shell = shutil.which("bash") or "/bin/sh"
    process = machine.start([shell, "-c", command], env, cwd)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return process.returncode, out, err


def _execute(wanted: dict[str, Any], machine: Machine) -> Reply:
    done = _run(
        wanted["command"], machine, wanted.get("envs"), wanted.get("cwd"), wanted.get("timeout") or DEFAULT_TIMEOUT
    )
    if done is None:
        return error(408, "command execution timeout", "PROCESS_EXECUTION_TIMEOUT")
    code, out, err = done
    return Reply.json(200, {"exitCode": code, "result": (out + err).decode(errors="replace")})


def _session(request: Request, machine: Machine, session: str, more: list[str]) -> Reply:
    commands = _SESSIONS.get(session)
    if commands is None:
        return error(404, "session not found")
    match (request.method, more):
        case ("DELETE", []):
            del _SESSIONS[session]
            return Reply(204)
        case ("POST", ["exec"]):
            done = _run(request.json()["command"], machine, None, None, None)
            code, out, err = done or (-1, b"", b"")
            texts = {"stdout": out.decode(errors="replace"), "stderr": err.decode(errors="replace")}
            command_id = str(uuid.uuid4())
            known = {"cmdId": command_id, "exitCode": code, "output": "".join(texts.values()), **texts}
            commands[command_id] = known
            return Reply.json(200, known)
        case ("GET", ["command", command, *logs]) if command in commands:
            return Reply.json(200, commands[command] | ({} if logs else {"id": command, "command": ""}))
    return error(404, "not found")


def _upload(request: Request) -> Reply:
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    paths: dict[str, str] = {}
    for part in message_from_bytes(head + request.body).walk():
        if part.is_multipart():
            continue
        found = re.search(r'name="?(files\[\d+\])\.(path|file)', str(part["Content-Disposition"]))
        data = part.get_payload(decode=True)
        if found is None or not isinstance(data, bytes):
            return error(400, "malformed upload")
        if found[2] == "path":
            paths[found[1]] = data.decode()
        else:
            path = Path(paths[found[1]])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return Reply.json(200, {})


def _download(paths: list[str]) -> Reply:
    boundary = secrets.token_hex(16)
    return Reply(200, _parts(paths, boundary), {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def _parts(paths: list[str], boundary: str) -> Iterator[bytes]:
    for name in paths:
        path, failed = Path(name), _unreadable(name)
        kind, form = ("error", "json") if failed else ("file", "octet-stream")
        disposition = f'Content-Disposition: form-data; name="{kind}"; filename="{_quoted(name)}"'
        yield f"--{boundary}\r\n{disposition}\r\nContent-Type: application/{form}\r\n\r\n".encode()
        yield from [failed] if failed else pieces(path)
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "%0A")


def _unreadable(name: str) -> bytes:
    """The error part of a file that cannot be read, or nothing."""
    if Path(name).is_file():
        return b""
    status, message, code = 404, f"file not found: {name}", "FILE_NOT_FOUND"
    if Path(name).is_dir():
        status, message, code = 400, "path is a directory", "INVALID_FILE_PATH"
    body = error(status, message, code).body
    return body if isinstance(body, bytes) else b""


def _clone(wanted: dict[str, Any], machine: Machine) -> Reply:
    argv = ["git", "clone", "--", wanted["url"], wanted["path"]]
    done = subprocess.run(
        argv, env=machine.environment({"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}), cwd=machine.home,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if done.returncode:
        return error(404 if "not found" in done.stderr else 500, done.stderr, "GIT_REPO_NOT_FOUND")
    return Reply(200)
