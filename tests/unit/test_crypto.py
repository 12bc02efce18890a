"""Keys: where they come from, and that what they seal opens only as it was sealed."""

from __future__ import annotations

import base64
import os
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure._ground.secrets import crypto
from perdure._ground.secrets.crypto import Key, KeyRing, decrypt, encrypt, generate, parse
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged

SECRET = bytes(range(32))
MATERIAL = "k1:" + base64.b64encode(SECRET).decode()


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(MATERIAL + "\n")
    path.chmod(0o600)
    return path


# ── where keys come from ─────────────────────────────────────────────────────────────────────────


def test_without_a_key_the_ring_is_empty():
    ring = KeyRing.load(None, environ={})

    assert ring.current is None and ring.ids == ()


def test_the_environment_holds_the_key_itself_or_says_where_it_is(key_file):
    for spec in (MATERIAL, "env:OTHER", f"file:{key_file}"):
        ring = KeyRing.load(None, environ={"PERDURE_KEY": spec, "OTHER": MATERIAL})
        assert ring.current == Key("k1", SECRET)


def test_a_given_spec_wins_over_the_environment(key_file):
    ring = KeyRing.load(f"file:{key_file}", environ={"PERDURE_KEY": generate("other")})

    assert ring.ids == ("k1",)


def test_of_several_keys_the_first_seals_and_all_of_them_open(key_file):
    ring = KeyRing.load(f"env:NEW, file:{key_file}", environ={"NEW": generate("new")})

    assert ring.current is not None and ring.current.id == "new"
    assert ring.get("k1").secret == SECRET


def test_a_key_can_stand_in_the_system_keyring(monkeypatch):
    held = {("perdure", "me"): MATERIAL}
    fake = SimpleNamespace(get_password=lambda service, user: held.get((service, user)))
    monkeypatch.setitem(sys.modules, "keyring", fake)

    assert KeyRing.load("keyring:perdure/me").current == Key("k1", SECRET)
    with pytest.raises(InvalidInput, match="no entry perdure/you"):
        KeyRing.load("keyring:perdure/you")


def test_without_the_keyring_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)

    with pytest.raises(InvalidInput, match="not installed") as refused:
        KeyRing.load("keyring:perdure/me")
    assert "perdure[keyring]" in refused.value.do


@pytest.mark.req("R142")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_that_others_can_use_is_refused(key_file, mode):
    key_file.chmod(mode)

    with pytest.raises(InvalidInput, match=f"mode {mode:o}") as refused:
        KeyRing.load(f"file:{key_file}")
    assert refused.value.do == f"chmod 600 {key_file}"


def test_a_key_that_is_not_where_the_spec_says_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="variable NOWHERE"):
        KeyRing.load("env:NOWHERE", environ={})
    with pytest.raises(InvalidInput, match="No such file"):
        KeyRing.load(f"file:{tmp_path}/none")


def test_a_generated_key_can_be_loaded_and_no_two_are_alike():
    one, other = parse(generate()), parse(generate())

    assert one.id != other.id and one.secret != other.secret
    assert parse(generate("mine-1")).id == "mine-1"


def test_two_different_keys_of_one_id_are_refused():
    ring = KeyRing([Key("k1", SECRET)])
    ring.add(Key("k1", SECRET))

    with pytest.raises(InvalidInput, match="two different keys 'k1'"):
        ring.add(Key("k1", bytes(32)))


def test_a_key_that_is_added_as_current_seals_from_now_on():
    ring = KeyRing([Key("old", SECRET)])
    ring.add(Key("new", bytes(32)), current=True)

    assert ring.current is not None and ring.current.id == "new"
    assert ring.ids == ("old", "new")


def test_a_key_that_is_not_here_is_named():
    with pytest.raises(KeyMissing) as missing:
        KeyRing().get("k9")
    assert missing.value.key_id == "k9"


# ── what is never shown ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142")
def test_no_repr_shows_the_secret():
    ring = KeyRing([Key("k1", SECRET)])

    for shown in (repr(ring), repr(ring.current), str(ring.current), str([*ring.current.__rich_repr__()])):
        assert "k1" in shown
        assert repr(SECRET) not in shown and MATERIAL[3:] not in shown


@pytest.mark.req("R142")
@pytest.mark.parametrize(
    "spec",
    [
        "{secret}",
        "k1:{secret}x",
        "k1:{half}",
        "UPPER:{secret}",
        "env:{secret}",
        "env:k1:{secret}",
        "file:k1:{secret}",
        "keyring:k1:{secret}",
        "file:{secret}",
        "{secret}:k1",
        "env:VARIABLE",
    ],
)
def test_a_bad_key_is_refused_and_never_shown(spec):
    secret = base64.b64encode(SECRET).decode()
    half = base64.b64encode(SECRET[:16]).decode()

    with pytest.raises(InvalidInput) as refused:
        KeyRing.load(spec.format(secret=secret, half=half), environ={"VARIABLE": secret})

    error: BaseException | None = refused.value
    while error is not None:
        assert secret not in f"{error!r}{error}" and half not in f"{error!r}{error}"
        error = error.__cause__ or error.__context__
    assert refused.value.do


# ── the cipher ───────────────────────────────────────────────────────────────────────────────────

KEY = Key("k1", SECRET)


@settings(max_examples=50)
@given(st.binary(max_size=200), st.binary(max_size=40))
def test_what_was_sealed_opens_with_the_same_key_and_binding(plaintext, bound_to):
    assert decrypt(KEY, encrypt(KEY, plaintext, bound_to), bound_to) == plaintext


@pytest.mark.req("R142")
def test_nothing_of_the_plaintext_shows_and_no_two_sealings_are_alike():
    one, other = (encrypt(KEY, b"password=hunter2", b"") for _ in range(2))

    assert b"hunter2" not in one
    assert one[:12] != other[:12] and one[12:] != other[12:]


@pytest.mark.req("R142")
def test_a_changed_byte_another_binding_or_another_key_does_not_open_it():
    sealed = encrypt(KEY, b"secret", b"task-1")
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]

    for bad in (*changed, sealed[:-1], sealed[:11], b""):
        with pytest.raises(RecordDamaged):
            decrypt(KEY, bad, b"task-1")
    with pytest.raises(RecordDamaged):
        decrypt(KEY, sealed, b"task-2")
    with pytest.raises(RecordDamaged):
        decrypt(Key("k1", os.urandom(32)), sealed, b"task-1")


def test_the_text_of_a_key_may_end_in_a_line_break():
    assert crypto.parse(MATERIAL + "\n") == KEY
