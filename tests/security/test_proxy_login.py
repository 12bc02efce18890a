"""A kept session logs in as libpq does, and never less carefully: libpq itself is asked beside it."""

from __future__ import annotations

import struct
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from perdure._runtime.sessions.postgres_address import options_of
from perdure.keeper.pgproxy.login import upstream as login
from tests.security.pgserver import PASSWORD, Script, demand, make_certificate, message, serving


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("keys"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def address(port: int, **options: str) -> dict[str, str]:
    usual = {"host": "localhost", "hostaddr": "127.0.0.1", "user": "me", "dbname": "db", "password": PASSWORD}
    return {**usual, "port": str(port), "connect_timeout": "10", "gssencmode": "disable", **options}


def ours(port: int, **options: str) -> str:
    """Why a kept session is refused; "" when it is logged in."""
    try:
        login.log_in({**address(port, **options), "patience": "0"}).socket.close()
    except login.LoginFailed as problem:
        return str(problem) or "refused without a reason"
    return ""


def libpq(port: int, **options: str) -> str:
    try:
        psycopg.connect(make_conninfo(**address(port, **options)), autocommit=True).close()
    except psycopg.Error as problem:
        return str(problem)
    return ""


SERVERS = {
    "trust": Script("trust"),
    "password": Script("password"),
    "md5": Script("md5"),
    "scram": Script("scram"),
    "scram, wrong proof": Script("scram", proof="wrong"),
    "scram, no proof": Script("scram", proof="skipped"),
    "channel binding without TLS": Script("plus"),
    "no authentication message": Script("ready"),
    "kerberos": Script("gss"),
    "trust by TLS": Script("trust", tls=True),
    "md5 by TLS": Script("md5", tls=True),
    "scram by TLS": Script("scram", tls=True),
    "channel binding": Script("plus", tls=True),
    "channel binding, wrong proof": Script("plus", tls=True, proof="wrong"),
    "channel binding, no proof": Script("plus", tls=True, proof="skipped"),
}
OPTIONS: list[dict[str, str]] = [
    {},
    *(
        {"require_auth": words}
        for words in (
            *("scram-sha-256", "password", "md5", "none", "gss"),
            *("!none", "!password", "!md5", "!scram-sha-256", "scram-sha-256,none", "!password,!md5", "password,md5"),
            *("scram-sha-256,!md5", "md5,md5", "kerberos", "md5,"),
        )
    ),
    {"channel_binding": "require"},
    {"channel_binding": "disable"},
    {"channel_binding": "require", "require_auth": "scram-sha-256"},
    {"channel_binding": "sometimes"},
    {"sslmode": "disable"},
    {"sslmode": "disable", "channel_binding": "require"},
    {"sslmode": "require"},
]


@pytest.mark.parametrize("server", SERVERS)
def test_it_comes_in_where_libpq_comes_in_and_nowhere_else(server: str, keys: tuple[Path, Path]) -> None:
    with serving(SERVERS[server], keys) as port:
        for options in OPTIONS:
            refused, refused_by_libpq = ours(port, **options), libpq(port, **options)
            if refused and not refused_by_libpq:
                # libpq takes an unfinished exchange for historical reasons. It proves nothing.
                assert "without proving" in refused, (options, refused)
                assert "no proof" in server
            else:
                assert bool(refused) == bool(refused_by_libpq), (options, refused, refused_by_libpq)


def test_a_server_is_not_believed_before_it_has_proved_that_it_knows_the_password(keys: tuple[Path, Path]) -> None:
    for script in (Script("scram", proof="skipped"), Script("plus", tls=True, proof="skipped")):
        with serving(script, keys) as port:
            assert "without proving" in ours(port)
            assert "without proving" in ours(port, require_auth="scram-sha-256,none")


def test_a_password_is_not_given_in_clear_once_scram_was_begun() -> None:
    with serving(Script("twice")) as port:
        assert "after it had asked for scram" in ours(port)


def test_channel_binding_is_used_where_it_can_be(keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of this test checks that the exchange is bound to its own certificate."""
    with serving(Script("plus", tls=True), keys) as port:
        assert ours(port, channel_binding="require") == ""
        monkeypatch.setattr("perdure.keeper.pgproxy.login.tls.binding_of", lambda link: b"x" * 32)
        assert ours(port, channel_binding="require"), "somebody in between has another certificate"


# ── certificates ─────────────────────────────────────────────────────────────────────────────────


CERTIFICATES: list[dict[str, str]] = [
    {"sslmode": "verify-full", "sslrootcert": "{cert}"},
    {"sslmode": "verify-full", "sslrootcert": "{other}"},
    {"sslmode": "verify-full", "sslrootcert": "system"},
    {"sslmode": "verify-full", "sslrootcert": "{cert}", "host": "127.0.0.1"},
    {"sslmode": "verify-ca", "sslrootcert": "{cert}", "host": "127.0.0.1"},
    {"sslmode": "verify-ca", "sslrootcert": "{other}"},
    {"sslmode": "verify-ca", "sslrootcert": "{nowhere}"},
    {"sslmode": "verify-full"},
    {"sslmode": "require", "sslrootcert": "{cert}"},
    {"sslmode": "require", "sslrootcert": "{other}"},
    {"sslmode": "require", "sslrootcert": "system"},
    {"sslmode": "prefer", "sslrootcert": "system"},
    {"sslmode": "require", "sslnegotiation": "direct"},
    {"sslmode": "prefer", "sslnegotiation": "direct"},
    {"sslmode": "verify-full", "sslrootcert": "{cert}", "sslnegotiation": "direct"},
    {"sslmode": "require", "ssl_max_protocol_version": "TLSv1.2"},
    {"sslmode": "require", "ssl_max_protocol_version": "TLSv9"},
    {"sslmode": "require", "sslsni": "0"},
    {"sslmode": "nonsense"},
]


def test_certificates_are_checked_as_libpq_checks_them(keys: tuple[Path, Path], tmp_path: Path) -> None:
    other, _ = make_certificate(tmp_path / "other")
    places = {"cert": keys[0], "other": other, "nowhere": tmp_path / "nowhere"}
    with serving(Script(tls=True), keys) as port:
        for row in CERTIFICATES:
            options = {name: value.format(**places) for name, value in row.items()}
            assert bool(ours(port, **options)) == bool(libpq(port, **options)), (row, ours(port, **options))


def test_a_root_certificate_in_its_usual_place_is_used(keys: tuple[Path, Path], home: Path) -> None:
    other, _ = make_certificate(home / "other")
    (home / ".postgresql").mkdir()
    with serving(Script(tls=True), keys) as port:
        assert ours(port, sslmode="require") == ""
        (home / ".postgresql" / "root.crt").write_bytes(other.read_bytes())
        assert "TLS" in ours(port, sslmode="require")
        (home / ".postgresql" / "root.crt").write_bytes(keys[0].read_bytes())
        assert ours(port, sslmode="verify-full") == ""


def test_a_server_that_does_not_confirm_its_protocol_is_refused_in_a_direct_handshake(keys: tuple[Path, Path]) -> None:
    with serving(Script(tls=True, alpn=False), keys) as port:
        assert "does not confirm" in ours(port, sslmode="require", sslnegotiation="direct")
        assert ours(port, sslmode="require") == ""


def test_files_are_meant_from_the_folder_of_the_one_who_names_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    found = options_of("host=h user=me sslrootcert=certs/root.crt")
    assert found["sslrootcert"] == str(home / "certs" / "root.crt")
    assert options_of("host=h user=me sslrootcert=system")["sslmode"] == "verify-full"
    assert options_of("host=h user=me sslrootcert=system sslmode=require")["sslmode"] == "require"


# ── what is not supported ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [
        {"gssencmode": "require"},
        {"sslcertmode": "require"},
        {"sslkeylogfile": "keys.log"},
        {"scram_client_key": "AAAA"},
        {"oauth_issuer": "https://example.org"},
        {"service": "mine"},
        {"replication": "database"},
        {"min_protocol_version": "3.2"},
        {"target_session_attrs": "any-other"},
        {"an_option_of_tomorrow": "on"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_cannot_be_honoured_is_refused_by_its_name(options: dict[str, str]) -> None:
    with serving(Script("trust")) as port:
        assert next(iter(options)) in ours(port, **options)


def test_every_option_that_libpq_has_is_known() -> None:
    """A libpq of tomorrow: its defaults must not be taken for something that was asked for."""
    with serving(Script("trust")) as port:
        usual = options_of(f"host=127.0.0.1 port={port} user=me dbname=db sslmode=disable")
        login.log_in({**usual, "patience": "0"}).socket.close()


# ── a server that lies about sizes ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "says",
    {
        "a length of nothing": b"R\0\0\0\0\0\0\0\0",
        "a length below itself": b"R\0\0\0\3",
        "a gigabyte": b"R\x3f\xff\xff\xff" + bytes(100),
        "the largest number": b"R\xff\xff\xff\xff",
        "an empty demand": message(b"R"),
        "a salt that is missing": demand(5, b"sa"),
        "an unknown demand": demand(99),
        "the end before the beginning": demand(12, b"v=AAAA"),
        "a challenge before the beginning": demand(11, b"r=x,s=AAAA,i=1"),
        "no mechanism": demand(10, b"\0"),
        "a thousand mechanisms": demand(10, b"X\0" * 1000),
        "a row": message(b"D", struct.pack("!H", 65535)),
        "a text": b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "parameters without end": demand(0) + message(b"S", b"a\0" + b"x" * 60_000 + b"\0") * 20,
        "a parameter without a value": demand(0) + message(b"S", b"a\0b"),
        "a key without a pid": demand(0) + message(b"K", b"xx"),
        "a second login": demand(0) + demand(3),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_server_that_says_nonsense_is_refused_at_once(says: tuple[str, bytes]) -> None:
    with serving(Script(says=says[1])) as port:
        refused = ours(port, connect_timeout="3")
    assert refused
    assert "timed out" not in refused, "it waited for more of it"
