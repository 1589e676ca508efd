"""A TCP proxy before a Docker engine's unix socket, that breaks one kind of request in a chosen way."""

import socket
import threading
import time
from contextlib import suppress

BEFORE = "cut before send"
AFTER = "cut after send"
SILENT = "send, never answer"
CUT_STREAM = "cut the answer after its first bytes"
COALESCE = "hold the answer back and send it in one piece"


class DockerProxy:
    """Use as a context manager; ``url`` is the address, ``breaks`` maps a path's part to ``[fault, ...]``.

    Each fault breaks one request, in order; afterwards requests pass. ``seen`` holds the request lines.
    """

    def __init__(self, engine: str, **breaks: list[str]):
        self._socket = engine.removeprefix("unix://")
        self.breaks = {key.replace("__", "/"): list(faults) for key, faults in breaks.items()}
        self.seen: list[str] = []
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for one in [self._server, *self._open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        """One connection: every request gets a connection of its own to the engine."""
        with suppress(OSError), client:
            head = _head(client)
            if not head:
                return
            line, _, rest = head.partition(b"\r\n")
            self.seen.append(line.decode())
            fault = self._fault(line.decode())
            if fault == BEFORE:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._socket)
            self._open.append(engine)
            with engine:
                # One request a connection, so that each is seen.
                engine.sendall(line + b"\r\nConnection: close\r\n" + _without_connection(rest))
                threading.Thread(target=_copy, args=(client, engine), daemon=True).start()
                self._answer(engine, client, fault)
                _hang_up(engine)
            _hang_up(client)

    def _fault(self, line):
        for part, faults in self.breaks.items():
            if part in line and faults:
                return faults.pop(0)
        return None

    def _answer(self, engine, client, fault):
        if fault == AFTER:
            engine.recv(1)  # the engine has done it
        elif fault == SILENT:
            while engine.recv(65536):
                pass
            time.sleep(60)
        elif fault == COALESCE:
            answer = bytearray()
            while data := engine.recv(65536):
                answer += data
            client.sendall(answer)
        elif fault == CUT_STREAM:
            answer = engine.recv(65536)
            while answer.rstrip().endswith(b"application/vnd.docker.raw-stream") or b"ready" not in answer:
                answer += engine.recv(65536)
            client.sendall(answer)
        else:
            _copy(engine, client)


def _hang_up(connection):
    # A close alone says nothing to the peer while another thread still reads.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _head(client):
    head = b""
    while b"\r\n\r\n" not in head:
        if not (data := client.recv(65536)):
            return b""
        head += data
    return head


def _without_connection(rest):
    head, _, body = rest.partition(b"\r\n\r\n")
    kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join(kept) + b"\r\n\r\n" + body


def _copy(source, target):
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
