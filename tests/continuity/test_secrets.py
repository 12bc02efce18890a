"""A secret is kept as the place it is in, fetched when used, and shown nowhere."""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from perdure._runtime.secrets import environment, redaction
from perdure._runtime.secrets.credentials import Token, renew
from perdure._runtime.secrets.environment import Rules
from perdure._runtime.secrets.secret_references import Secret, references_in, resolve
from perdure.errors import CredentialRefused, InvalidInput, SecretMissing

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    redaction.forget_all()
    yield
    redaction.forget_all()


# ── references ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "source, name", [("env", "A"), ("file", "/run/x y"), ("keyring", "svc/ada"), ("command", "pass show a/b 'c d'")]
)
def test_a_secret_is_its_reference_in_text_and_back(source: str, name: str) -> None:
    secret = Secret(source, name)  # type: ignore[arg-type]
    assert Secret.parse(secret.reference) == secret
    assert str(secret) == f"{secret}" == secret.reference
    assert resolve({"list": ["no reference", 7]}) == {"list": ["no reference", 7]}
    assert references_in({"a": [secret.reference], "b": "x"}) == [secret.reference]


def test_a_secret_is_fetched_when_it_is_used_not_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret("env", "PLANTED")
    with pytest.raises(SecretMissing, match="PLANTED"):
        secret.value()
    monkeypatch.setenv("PLANTED", "first-value")
    assert secret.value() == "first-value"
    monkeypatch.setenv("PLANTED", "second-value")
    assert resolve({"dsn": [secret.reference]}) == {"dsn": ["second-value"]}
    assert "second-value" not in repr(secret) + str(secret)


def test_a_secret_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("from-a-file\n")
    path.chmod(0o600)
    assert Secret("file", str(path)).value() == "from-a-file"
    path.chmod(0o666)
    with pytest.raises(SecretMissing, match="may write"):
        Secret("file", str(path)).value()


@pytest.mark.req("R143")
def test_a_command_that_stands_in_a_record_is_not_run_unless_the_program_named_it(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    command = f"{sys.executable} -c \"open({str(trace)!r}, 'w').write('x'); print('gotten')\""
    reference = "secret://command/" + quote(command, safe="")
    with pytest.raises(SecretMissing, match="not named"):
        resolve(reference)
    assert not trace.exists()
    assert resolve(reference, {**os.environ, "PERDURE_SECRET_COMMANDS": f"\n{command}\n"}) == "gotten"
    trace.unlink()
    Secret("command", command)
    assert resolve(reference) == "gotten"


def test_a_reference_to_nowhere_is_refused() -> None:
    for text in ("secret://nowhere/x", "secret://env/", "https://x", "secret://"):
        with pytest.raises(InvalidInput):
            Secret.parse(text)


# ── redaction ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142")
def test_a_value_that_was_fetched_is_redacted_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "correct horse/battery")
    value = Secret("env", "PLANTED").value()
    text = f"{value} {quote(value, safe='')} {base64.b64encode(value.encode()).decode()} {json.dumps(value)}"
    clean = redaction.redact(text)
    assert "horse" not in clean and base64.b64encode(value.encode()).decode()[:12] not in clean
    assert "secret://env/PLANTED" in clean
    assert redaction.known_in(b"x " + value.encode()) == ["secret://env/PLANTED"]


PLANTED = [
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "ghp_" + "a1B2c3D4e5" * 4,
    "sk-" + "proj-abcdefghijklmnop1234",
    "xoxb-" + "1234567890-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQ\n-----END RSA PRIVATE KEY-----",
    "glpat-" + "abcdefghij0123456789",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "sk_live_" + "abcdefghijklmnop1234",
    "SG." + "abcdefghijklmnop.qrstuvwxyz0123456789",
]


@pytest.mark.parametrize("secret", PLANTED, ids=range(len(PLANTED)))
def test_a_token_of_a_known_form_is_redacted_even_if_nobody_knew_it(secret: str) -> None:
    assert secret not in redaction.redact(f"the log says {secret} here")
    assert redaction.looks_secret(secret)


@pytest.mark.parametrize(
    "text, kept",
    [
        ("postgresql://ada:hunter22@db:5432/app", "postgresql://ada:[secret]@db:5432/app"),
        ("PASSWORD=hunter22 make", "PASSWORD=[secret] make"),
        ('{"api_key": "abcd1234"}', '{"api_key": "[secret]"}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [secret]"),
        ("Cookie: session=abcdef; path=/", "Cookie: session=[secret]; path=/"),
    ],
)
def test_what_stands_behind_a_telling_name_is_redacted(text: str, kept: str) -> None:
    assert redaction.redact(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:5173/path",
        "read 3 tokens of the stream",
        "token=secret://env/TOKEN",
        "/usr/lib/python3.11/site-packages",
        "https://example.org:8080/x?y=1",
        "the passwords were changed: three of them",
        "commit 6deecf0a51b20a2b3c35e0ab35cfa9ec67c3d83e",
    ],
)
def test_what_is_no_secret_is_left_as_it_is(text: str) -> None:
    assert redaction.redact(text) == text


def test_a_log_handler_with_the_filter_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    redaction.know("a-very-secret-value", "secret://env/X")
    caplog.handler.addFilter(redaction.RedactingFilter())
    logging.getLogger("any").warning("sent %s to %s", "a-very-secret-value", "there")
    assert caplog.messages == ["sent secret://env/X to there"]


def test_values_under_telling_keys_are_hidden_in_what_is_shown() -> None:
    shown = redaction.redact_value({"user": "ada", "db": {"password": "short"}, "list": ["sk-" + "a" * 24]})
    assert shown == {"user": "ada", "db": {"password": "[secret]"}, "list": ["[secret]"]}


# ── the environment ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R73")
def test_an_environment_is_kept_without_its_secrets_and_rebuilt_with_them() -> None:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/ada",
        "APP_MODE": "migrate",
        "GITHUB_TOKEN": "abc",
        "DATABASE": "postgresql://ada:hunter22@db/app",
        "NOISE": "q8Zr1LpV3xT0bN5cMw7KjH2dFg9S",
        "EMPTY_TOKEN": "",
        "SHLVL": "3",
    }
    captured = environment.capture(env)
    assert captured.values == {"PATH": "/usr/bin:/bin", "HOME": "/home/ada", "APP_MODE": "migrate", "EMPTY_TOKEN": ""}
    assert captured.secrets == {name: f"secret://env/{name}" for name in ("GITHUB_TOKEN", "DATABASE", "NOISE")}
    rebuilt = environment.rebuild(captured, env)
    assert rebuilt == {name: value for name, value in env.items() if name != "SHLVL"}


def test_rules_decide_before_the_scan() -> None:
    env = {"PUBLIC_KEY": "x1", "INTERNAL_HOST": "db-7"}
    captured = environment.capture(env, Rules(allow=["PUBLIC_*"], deny=["INTERNAL_*"]))
    assert captured.values == {"PUBLIC_KEY": "x1"}
    assert captured.secrets == {"INTERNAL_HOST": "secret://env/INTERNAL_HOST"}


def test_nothing_of_the_resumers_environment_comes_in_but_the_secrets() -> None:
    captured = environment.capture({"A": "1", "A_TOKEN": "abcdefgh"})
    rebuilt = environment.rebuild(captured, {"A_TOKEN": "newer-one", "LD_PRELOAD": "evil", "A": "2"})
    assert rebuilt == {"A": "1", "A_TOKEN": "newer-one"}


def test_a_variable_that_is_missing_at_rebuild_is_named() -> None:
    captured = environment.capture({"A_TOKEN": "abcdefgh", "VIRTUAL_ENV": "/nowhere/venv"})
    assert set(environment.missing(captured, {})) == {"A_TOKEN", "VIRTUAL_ENV"}
    with pytest.raises(SecretMissing, match="A_TOKEN"):
        environment.rebuild(captured, {})


@pytest.mark.req("R73")
def test_an_active_virtualenv_is_put_together_again_from_its_prefix(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    prefix = str(tmp_path / "venv")
    env = {"PATH": f"/usr/bin:{prefix}/bin", "VIRTUAL_ENV": prefix, "PYTHONHOME": "/old"}
    rebuilt = environment.rebuild(environment.capture(env))
    assert rebuilt == {"PATH": f"{prefix}/bin:/usr/bin", "VIRTUAL_ENV": prefix}


def test_the_umask_is_read_without_changing_it() -> None:
    before = os.umask(0o027)
    try:
        assert environment.umask_now() == 0o027
        assert environment.umask_now() == 0o027
    finally:
        os.umask(before)


# ── credentials ──────────────────────────────────────────────────────────────────────────────────


def old() -> Token:
    return Token("expired-token", NOW - timedelta(seconds=1))


@pytest.mark.req("R93")
async def test_a_token_that_holds_is_used_and_an_expired_one_is_refreshed() -> None:
    holds = Token("still-good", NOW + timedelta(hours=1))
    assert await renew("api", holds, NOW, refresh=lambda: "never asked") == (holds, "valid")
    assert (await renew("api", old(), NOW, refresh=lambda: "fresh-token"))[0].value == "fresh-token"


@pytest.mark.req("R93")
async def test_when_refreshing_is_refused_a_login_is_tried_and_then_a_person_is_needed() -> None:
    def refused() -> str:
        raise PermissionError("401 for expired-token-abc")

    async def login() -> Token:
        return Token("by-login", NOW + timedelta(hours=1))

    token, how = await renew("api", old(), NOW, refresh=refused, login=login)
    assert (token.value, how) == ("by-login", "logged in")
    with pytest.raises(CredentialRefused) as told:
        await renew("api", old(), NOW, refresh=refused, login=lambda: old())
    assert [way for way, _ in told.value.tried] == ["refresh", "login"]
    assert "expired already" in str(told.value)


def test_a_token_does_not_show_its_value() -> None:
    assert "expired-token" not in repr(old())


def test_redacting_a_megabyte_of_noise_is_no_labour() -> None:
    noise = "password" + "a" * 1_000_000 + " " + "x-" * 300_000
    assert len(redaction.redact(noise)) == len(noise)
