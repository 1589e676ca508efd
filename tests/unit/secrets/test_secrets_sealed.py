"""The sealed box: what opens it, what does not, and what its errors say."""

import base64
import copy
import json
import pickle
import re
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PublicKey, SealedBox

from worker.failures.model import Category, Credential, InvalidRequest, OperationFailed
from worker.secrets.keys import Key, KeyRing, encode, generate, key_id, read_public_key
from worker.secrets.keys import PublicKey as PublicKeyOfRing
from worker.secrets.sealed import BOX_LIMIT, Binding, Plaintext, seal, unseal
from worker.secrets.secret import Secret
from worker.secrets.subject import git_subject

NOW = 1_800_000_000.0
TOKEN = "ghs_" + "Ab1." * 129
USE = {"run_id": "run-1", "operation": "clone", "subject": "https://github.com/acme/site"}
BINDING = Binding(**USE)
OLD, CURRENT = generate(), generate()
RING = KeyRing((OLD, CURRENT))


def plaintext(**changes):
    return Plaintext(**{**USE, "expires_at": NOW + 60, "username": "x-access-token", "secret": TOKEN, **changes})


def seal_raw(data, key=CURRENT):
    sealed = SealedBox(PublicKey(key.public.public_key)).encrypt(data)
    return f"sbx1.{key.public.id}.{encode(sealed)}"


def refusal(box, binding=BINDING, ring=RING, now=NOW):
    with pytest.raises(InvalidRequest) as caught:
        unseal(box, ring, binding, now)
    shown = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in shown
    assert caught.value.__context__ is None
    assert caught.value.field_name == "credential_box"
    return caught.value.reason


class TestUnseal:
    def test_gives_the_credential(self):
        opened = unseal(seal(CURRENT.public.public_key, plaintext(minted_at=NOW - 5)), RING, BINDING, NOW)
        assert opened.secret.reveal() == TOKEN
        assert (opened.username, opened.expires_at, opened.minted_at) == ("x-access-token", NOW + 60, NOW - 5)
        assert opened.credential is Credential.MINTED
        assert TOKEN not in repr(opened)

    def test_token_without_a_mint_date_is_static(self):
        opened = unseal(seal(CURRENT.public.public_key, plaintext()), RING, BINDING, NOW)
        assert opened.credential is Credential.STATIC

    @pytest.mark.parametrize("key", [OLD, CURRENT], ids=["older", "current"])
    def test_every_key_of_the_ring_opens(self, key):
        box = seal(key.public.public_key, plaintext())
        assert unseal(box, RING, BINDING, NOW).secret.reveal() == TOKEN

    def test_retired_key_is_unknown(self):
        box = seal(OLD.public.public_key, plaintext())
        assert refusal(box, ring=RING.without(OLD.public.id)) == "secret_key_unknown"

    @pytest.mark.parametrize("field", ["run_id", "operation", "subject"])
    @pytest.mark.parametrize("change", [lambda text: text + "x", str.upper, lambda text: text[:-1], lambda _: "*"])
    def test_any_other_use_is_refused(self, field, change):
        box = seal(CURRENT.public.public_key, plaintext())
        assert refusal(box, Binding(**{**USE, field: change(USE[field])})) == "secret_binding"

    @pytest.mark.parametrize(("now", "alive"), [(NOW + 59.9, True), (NOW + 60, False), (NOW + 1e6, False)])
    def test_expiry(self, now, alive):
        box = seal(CURRENT.public.public_key, plaintext(minted_at=NOW))
        if alive:
            assert unseal(box, RING, BINDING, now).secret.reveal() == TOKEN
            return
        with pytest.raises(OperationFailed) as caught:
            unseal(box, RING, BINDING, now)
        failure = caught.value.failure
        assert (failure.category, failure.reason) == (Category.AUTH_DENIED, "token_expired")
        assert (failure.operation, failure.stage, failure.credential) == ("clone", "unseal", Credential.MINTED)

    def test_wrong_binding_wins_over_expiry(self):
        box = seal(CURRENT.public.public_key, plaintext())
        assert refusal(box, Binding(**{**USE, "run_id": "run-2"}), now=NOW + 1e6) == "secret_binding"

    @pytest.mark.parametrize(
        "box",
        [
            "",
            "sbx1",
            "sbx1..",
            TOKEN,
            "sbx1.KEY.",
            "sbx1.KEY.AAAA",
            "sbx1.KEY.A",
            "sbx1.KEY." + "A" * 200,
            "sbx1.KEY." + "A" * 200 + "\n",
            "sbx2.KEY." + "A" * 200,
            "sbx1." + "A" * BOX_LIMIT,
        ],
    )
    def test_garbage(self, box):
        assert refusal(box.replace("KEY", CURRENT.public.id)) == "secret_unsealable"

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{}",
            b"[]",
            b"\xff",
            b"null",
            json.dumps({**USE, "v": 2, "expires_at": NOW + 60, "username": "u", "secret": TOKEN}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": str(NOW + 60), "username": "u", "secret": TOKEN}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": float("nan"), "username": "u", "secret": TOKEN}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": float("inf"), "username": "u", "secret": TOKEN}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": NOW + 60, "username": "u\nhost=evil", "secret": TOKEN}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": NOW + 60, "username": "u", "secret": TOKEN + "\n"}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": NOW + 60, "username": "u", "secret": ""}).encode(),
            json.dumps({**USE, "v": 1, "expires_at": NOW + 60, "username": "u", "secret": TOKEN, "only": "x"}).encode(),
            json.dumps({"v": 1, "expires_at": NOW + 60, "username": "u", "secret": TOKEN}).encode(),
        ],
    )
    def test_a_box_that_opens_but_holds_nonsense(self, data):
        assert refusal(seal_raw(data)) == "secret_unsealable"

    def test_a_box_of_the_documented_form_made_without_our_code(self):
        fields = {**USE, "v": 1, "expires_at": int(NOW) + 60, "username": "u", "secret": "пароль"}
        sealed = SealedBox(PublicKey(CURRENT.public.public_key)).encrypt(json.dumps(fields).encode())
        box = f"sbx1.{CURRENT.public.id}.{base64.urlsafe_b64encode(sealed).decode()}"  # padded: some languages do
        assert unseal(box, RING, BINDING, NOW).secret.reveal() == "пароль"

    @given(st.integers(0, 10_000), st.integers(1, 255))
    def test_any_changed_byte_is_refused(self, position, change):
        prefix, body = seal(CURRENT.public.public_key, plaintext()).rsplit(".", 1)
        data = bytearray(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        data[position % len(data)] ^= change
        assert refusal(f"{prefix}.{encode(bytes(data))}") == "secret_unsealable"

    @given(st.text(max_size=300))
    def test_any_text_is_refused_by_name(self, text):
        assert refusal(text) in {"secret_unsealable", "secret_key_unknown"}

    def test_a_key_id_of_another_key_does_not_open(self):
        _, _, body = seal(CURRENT.public.public_key, plaintext()).split(".")
        assert refusal(f"sbx1.{OLD.public.id}.{body}") == "secret_unsealable"


class TestSeal:
    def test_text_form(self):
        box = seal(CURRENT.public.public_key, plaintext())
        version, key, body = box.split(".")
        assert (version, key) == ("sbx1", key_id(CURRENT.public.public_key))
        assert "=" not in body
        assert TOKEN not in box
        assert box != seal(CURRENT.public.public_key, plaintext())

    def test_plaintext_hides_its_secret(self):
        assert TOKEN not in repr(plaintext()) + str(plaintext())

    @pytest.mark.parametrize("size", [1, 520, 8192])
    def test_tokens_of_all_sizes_fit(self, size):
        box = seal(CURRENT.public.public_key, plaintext(secret="x" * size))
        assert unseal(box, RING, BINDING, NOW).secret.reveal() == "x" * size

    @pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33])
    def test_not_a_public_key(self, key):
        with pytest.raises(ValueError):
            seal(key, plaintext())


class TestSecret:
    def test_shows_nothing(self):
        secret = Secret(TOKEN)
        assert [repr(secret), str(secret), f"{secret}", f"{[secret]}"] == ["<redacted>"] * 3 + ["[<redacted>]"]

    @pytest.mark.parametrize("ship", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, vars])
    def test_does_not_travel(self, ship):
        with pytest.raises(TypeError) as caught:
            ship(Secret(TOKEN))
        assert TOKEN not in str(caught.value)

    def test_compares_by_value(self):
        assert Secret("a") == Secret("a")
        assert Secret("a") != Secret("b")
        assert Secret("a") != "a"
        assert len({Secret("a"), Secret("a")}) == 1
        assert not Secret("")


class TestGitSubject:
    @pytest.mark.parametrize(
        ("url", "subject"),
        [
            ("https://github.com/acme/site", "https://github.com/acme/site"),
            ("https://github.com/acme/site.git", "https://github.com/acme/site"),
            ("https://github.com/acme/site.git/", "https://github.com/acme/site"),
            ("https://github.com/acme/site//", "https://github.com/acme/site"),
            ("HTTPS://GitHub.COM/Acme/Site", "https://github.com/Acme/Site"),
            ("https://user:pa%3As@github.com/acme/site", "https://github.com/acme/site"),
            ("https://github.com:443/acme/site", "https://github.com/acme/site"),
            ("http://github.com:443/acme/site", "http://github.com:443/acme/site"),
            ("http://127.0.0.1:8080/acme/site.js", "http://127.0.0.1:8080/acme/site.js"),
            ("http://[::1]:80/acme/site", "http://[::1]/acme/site"),
            ("https://gitlab.example/group/sub/site.git", "https://gitlab.example/group/sub/site"),
        ],
    )
    def test_one_way_of_writing(self, url, subject):
        assert git_subject(url) == subject
        assert git_subject(subject) == subject

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "github.com/acme/site",
            "git@github.com:acme/site",
            "ssh://github.com/acme/site",
            "file:///acme/site",
            "https://github.com/acme",
            "https://gitlab.example/" + "a/" * 21 + "site",
            "https://github.com/acme//site",
            "https://github.com/acme/..",
            "https://github.com/./site",
            "https://github.com/acme/.git",
            "https://github.com/acme/site?x=1",
            "https://github.com/acme/site#x",
            "https://github.com/acme/si%74e",
            "https://github.com/acme/site\n",
            "https://github.com\\@evil.example/acme/site",
            "https://evil.example/@github.com/site/x",
            "https://a@b@github.com/acme/site",
            "https://github.com:/acme/site",
            "https://github.com:x/acme/site",
            "https://g\u0131thub.com/acme/site",
            "https:///acme/site",
            "https://-x.example/acme/site",
        ],
    )
    def test_refuses_what_could_be_read_in_two_ways(self, url):
        with pytest.raises(InvalidRequest) as caught:
            git_subject(url)
        assert str(caught.value) == "url: malformed_url"


def test_the_example_of_the_documentation_opens():
    text = (Path(__file__).parents[3] / "docs/secrets.md").read_text(encoding="utf-8")
    box = re.search(r"^sbx1\.[0-9a-f]{16}\.\S+$", text, re.MULTILINE)[0]
    private = re.search(r"^`([\w-]{43})`", text, re.MULTILINE)[1]
    public = read_public_key(re.search(r'base64url_decode\("([\w-]{43})"\)', text)[1])
    key = Key(PublicKeyOfRing(key_id(public), datetime(2026, 1, 1, tzinfo=UTC), public), Secret(private))
    opened = unseal(box, KeyRing((key,)), Binding(**{**USE, "run_id": "run-42"}), NOW)
    assert (opened.username, opened.secret.reveal()) == ("x-access-token", "not-a-real-token")
    assert opened.expires_at == 1_900_000_000
