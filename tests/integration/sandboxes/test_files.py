"""Files in and out, on every driver."""

import hashlib
import itertools

import pytest

from tests.integration.sandboxes.helpers import soon
from worker.failures.model import InvalidRequest, OperationFailed
from worker.sandboxes.deadline import Deadline

EVERY = bytes(range(256)) * 4096  # 1 MiB


def path_in(sandbox, name):
    return f"{sandbox.layout.workspace}/{name}"


class TestWrite:
    @pytest.mark.parametrize("data", [b"", b"x", EVERY])
    def test_read_gives_back_what_was_written(self, sandbox, data):
        sandbox.write(path_in(sandbox, "f"), data, deadline=soon())
        assert b"".join(sandbox.read(path_in(sandbox, "f"), deadline=soon())) == data

    def test_streams(self, sandbox):
        sandbox.write(path_in(sandbox, "big"), itertools.repeat(EVERY, 20), deadline=soon())
        done = sandbox.run(["sha256sum", "big"], deadline=soon())
        assert done.stdout.split()[0].decode() == hashlib.sha256(EVERY * 20).hexdigest()

    @pytest.mark.parametrize(("mode", "shown"), [(None, "-rw-------"), (0o755, "-rwxr-xr-x")])
    def test_is_private_unless_asked(self, sandbox, mode, shown):
        sandbox.write(path_in(sandbox, "m"), b"x", deadline=soon(), **({"mode": mode} if mode else {}))
        assert sandbox.run(["ls", "-l", "m"], deadline=soon()).stdout.decode().startswith(shown)

    def test_replaces(self, sandbox):
        for data in (b"first, longer", b"second"):
            sandbox.write(path_in(sandbox, "r"), data, deadline=soon())
        assert b"".join(sandbox.read(path_in(sandbox, "r"), deadline=soon())) == b"second"

    def test_a_source_that_fails_leaves_what_was_there(self, sandbox):
        def failing():
            yield b"half"
            raise ZeroDivisionError

        sandbox.write(path_in(sandbox, "whole"), b"before", deadline=soon())
        with pytest.raises(ZeroDivisionError):
            sandbox.write(path_in(sandbox, "whole"), failing(), deadline=soon())
        assert b"".join(sandbox.read(path_in(sandbox, "whole"), deadline=soon())) == b"before"
        assert b".sandferry-" not in sandbox.run(["ls", "-a"], deadline=soon()).stdout

    def test_names_a_shell_would_stumble_over(self, sandbox):
        name = path_in(sandbox, "-n $(id) 'a\" ü\n*")
        sandbox.write(name, b"x", deadline=soon())
        assert b"".join(sandbox.read(name, deadline=soon())) == b"x"

    @pytest.mark.parametrize("path", ["relative", "", "/", "/x/..", "/x\0y"])
    def test_paths_that_name_no_file(self, sandbox, path):
        with pytest.raises(InvalidRequest, match="path: "):
            sandbox.write(path, b"x", deadline=soon())

    def test_into_a_directory_that_is_not_there(self, sandbox):
        with pytest.raises(FileNotFoundError):
            sandbox.write(path_in(sandbox, "no/such/f"), b"x", deadline=soon())

    def test_onto_a_directory(self, sandbox):
        sandbox.run(["mkdir", "-p", "dir"], deadline=soon())
        with pytest.raises(IsADirectoryError):
            sandbox.write(path_in(sandbox, "dir"), b"x", deadline=soon())
        assert sandbox.run(["ls", "-A", "dir"], deadline=soon()).stdout == b""

    def test_past_the_deadline(self, sandbox):
        with pytest.raises(OperationFailed) as failed:
            sandbox.write(path_in(sandbox, "late"), b"x", deadline=Deadline.after(-1))
        assert failed.value.failure.reason == "deadline"
        assert sandbox.run(["ls", "late"], deadline=soon()).exit_code != 0


class TestRead:
    @pytest.mark.parametrize("offset", [0, 1, 70_000, len(EVERY) - 1, len(EVERY), len(EVERY) + 5])
    def test_from_an_offset(self, sandbox, offset):
        sandbox.write(path_in(sandbox, "o"), EVERY, deadline=soon())
        assert b"".join(sandbox.read(path_in(sandbox, "o"), offset=offset, deadline=soon())) == EVERY[offset:]

    def test_comes_in_pieces(self, sandbox):
        sandbox.write(path_in(sandbox, "p"), EVERY * 17, deadline=soon())
        sizes = [len(chunk) for chunk in sandbox.read(path_in(sandbox, "p"), deadline=soon())]
        assert sum(sizes) == len(EVERY) * 17
        assert max(sizes) <= 8 * 1024 * 1024

    def test_may_be_left_in_the_middle(self, sandbox):
        sandbox.write(path_in(sandbox, "q"), EVERY * 8, deadline=soon())
        chunks = sandbox.read(path_in(sandbox, "q"), deadline=soon())
        assert EVERY.startswith(next(chunks)[:1000])
        chunks.close()
        assert sandbox.run(["true"], deadline=soon()).ok

    def test_what_is_not_there(self, sandbox):
        with pytest.raises(FileNotFoundError):
            list(sandbox.read(path_in(sandbox, "absent"), deadline=soon()))

    def test_a_directory(self, sandbox):
        with pytest.raises(IsADirectoryError):
            list(sandbox.read(sandbox.layout.workspace, deadline=soon()))

    def test_a_slow_reader_loses_nothing_and_holds_nothing_up(self, sandbox):
        # More than the pipes and sockets on the way hold, less than keeps the writer waiting.
        data = EVERY + b"x" * 210_000
        sandbox.write(path_in(sandbox, "slow"), data, deadline=soon())
        chunks = sandbox.read(path_in(sandbox, "slow"), deadline=soon())
        got = next(chunks)
        assert sandbox.run(["true"], deadline=soon(5)).ok
        assert got + b"".join(chunks) == data

    def test_more_than_one_segment(self, sandbox):
        sandbox.write(path_in(sandbox, "segments"), EVERY * 17 + b"end", deadline=soon())
        read = hashlib.sha256()
        for chunk in sandbox.read(path_in(sandbox, "segments"), offset=5, deadline=soon()):
            read.update(chunk)
        assert read.digest() == hashlib.sha256((EVERY * 17 + b"end")[5:]).digest()
