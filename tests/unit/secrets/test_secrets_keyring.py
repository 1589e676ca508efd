"""Key ring files: rotation, modes, damage."""

import json
import os
import stat
import threading
from datetime import UTC, datetime

import pytest

from worker.secrets import keyring
from worker.secrets.keyring import KeyRingError
from worker.secrets.keys import KeyRing, encode, generate, key_id, read_public_key

DAY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ring.json"


class TestFile:
    def test_new_makes_a_private_file_and_the_last_key_seals(self, path):
        first = keyring.new(path, now=DAY)
        second = keyring.new(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert keyring.list_keys(path) == (first, second)
        assert keyring.load(path).current == second
        assert first.created == DAY
        assert [entry.name for entry in path.parent.iterdir()] == ["ring.json"]

    def test_new_makes_a_private_directory(self, tmp_path):
        path = tmp_path / "etc" / "ring.json"
        keyring.new(path)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert len(keyring.list_keys(path)) == 1

    def test_a_file_survives_the_way_through_memory(self, path):
        keyring.new(path)
        ring = keyring.load(path)
        keyring.save(path, ring)
        assert keyring.load(path) == ring

    def test_list_never_shows_a_private_key(self, path):
        keyring.new(path)
        private = keyring.load(path).keys[0].private_key.reveal()
        assert private in path.read_text()
        assert private not in repr(keyring.list_keys(path)) + repr(keyring.load(path))

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o610, 0o644])
    def test_refuses_a_file_that_others_may_use(self, path, mode):
        keyring.new(path)
        path.chmod(mode)
        for use in (keyring.load, keyring.list_keys, keyring.new):
            with pytest.raises(KeyRingError, match="chmod 600"):
                use(path)

    @pytest.mark.parametrize("mode", [0o600, 0o400])
    def test_accepts_a_private_file(self, path, mode):
        key = keyring.new(path)
        path.chmod(mode)
        assert keyring.list_keys(path) == (key,)

    def test_missing_file(self, path):
        with pytest.raises(KeyRingError, match="No such file"):
            keyring.load(path)

    def test_retire(self, path):
        first, second = keyring.new(path), keyring.new(path)
        assert keyring.retire(path, first.id) is True
        assert keyring.retire(path, first.id) is False
        assert keyring.list_keys(path) == (second,)
        with pytest.raises(KeyRingError, match="current key"):
            keyring.retire(path, second.id)

    def test_a_failed_write_leaves_the_old_file(self, path, monkeypatch):
        key = keyring.new(path)

        def fail(*_):
            raise OSError("disk full")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            keyring.new(path)
        monkeypatch.undo()
        assert keyring.list_keys(path) == (key,)
        assert [entry.name for entry in path.parent.iterdir()] == ["ring.json"]

    def test_two_operators_at_once_lose_no_key(self, path):
        threads = [threading.Thread(target=keyring.new, args=(path,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keyring.list_keys(path)) == 8


def stored(**changes):
    key = generate(DAY)
    entry = {
        "id": key.public.id,
        "created": DAY.isoformat(),
        "public_key": key.public.text,
        "private_key": key.private_key.reveal(),
    }
    return {**entry, **changes}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        json.dumps({"version": 2, "keys": []}).encode(),
        json.dumps({"version": 1, "keys": [stored(id="0" * 16)]}).encode(),
        json.dumps({"version": 1, "keys": [stored(private_key="short")]}).encode(),
        json.dumps({"version": 1, "keys": [stored(private_key="!" * 43)]}).encode(),
        json.dumps({"version": 1, "keys": [stored(public_key=encode(b"x" * 31))]}).encode(),
        json.dumps({"version": 1, "keys": [stored(created="yesterday")]}).encode(),
    ],
)
def test_damaged_file_is_refused_without_an_echo(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyRingError) as caught:
        keyring.load(path)
    assert str(caught.value) == "key ring: damaged, or not a key ring of version 1"
    assert caught.value.__context__ is None


def test_a_huge_file_is_not_read(path):
    path.write_bytes(b" " * (keyring.FILE_LIMIT + 1))
    path.chmod(0o600)
    with pytest.raises(KeyRingError, match="larger"):
        keyring.load(path)


class TestKeys:
    def test_an_empty_ring_cannot_seal(self):
        with pytest.raises(LookupError):
            _ = KeyRing(()).current

    def test_public_key_text(self):
        key = generate()
        assert read_public_key(key.public.text + "\n") == key.public.public_key
        assert key_id(bytes(32)) == "66687aadf862bd77"  # the head of SHA-256 of 32 zero bytes

    @pytest.mark.parametrize("text", ["", "A", "A" * 42, "A" * 44, "é" * 43, "A" * 42 + "+"])
    def test_not_a_public_key(self, text):
        with pytest.raises(ValueError):
            read_public_key(text)
