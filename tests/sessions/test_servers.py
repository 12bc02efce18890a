"""The way to the server: passwords, TLS, a server that restarts. Credentials stay with the proxy."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from perdure._ground.clock import MovableClock
from perdure.errors import SessionUnavailable
from tests.runtime.kit import until
from tests.sessions.acts import one
from tests.sessions.cluster import Cluster
from tests.sessions.kit import Stage


@pytest.mark.parametrize("user", ["app", "old", "plain"])
async def test_scram_md5_and_plain_passwords_log_in_and_wrong_ones_do_not(
    stage: Stage, cluster: Cluster, user: str
) -> None:
    with pytest.raises(SessionUnavailable, match="password"):
        await stage.open(url=make_conninfo(**cluster.url(user, "wrong")))
    session = await stage.open(url=make_conninfo(**cluster.url(user)))
    con = await session.connect()  # without any password
    assert await one(con, "SELECT current_user") == (user,)
    await con.close()


async def test_a_restarted_server_is_lost_with_the_reason_and_found_again(stage: Stage, cluster: Cluster) -> None:
    url = make_conninfo(**cluster.url("app"))
    session = await stage.open(url=url)
    con = await session.connect()
    await con.execute("CREATE TABLE IF NOT EXISTS restarts (x int)")
    await con.commit()
    await con.execute("INSERT INTO restarts VALUES (1)")
    cluster.stop(signal.SIGINT)
    with pytest.raises(psycopg.OperationalError):
        await con.execute("SELECT 1")
    stage.wait("gone")
    cluster.start()
    again = await stage.open(url=url)  # waits until the server answers
    assert again.level == "lost"
    assert "shutting down" in again.verdict.reason or "administrator" in again.verdict.reason
    con = await again.connect()
    assert await one(con, "SELECT count(*) FROM restarts") == (0,)
    await con.close()


async def test_after_a_failover_the_session_is_lost_with_the_reason_and_goes_on_at_the_new_primary(
    stage: Stage, tmp_path: Path
) -> None:
    cluster = Cluster()
    standby = None
    try:
        standby = cluster.standby()
        ports = f"{cluster.port},{standby.port}"
        both = cluster.url("app", host="127.0.0.1,127.0.0.1", port=ports, target_session_attrs="read-write")
        url = make_conninfo(**both)
        session = await stage.open(url=url)
        con = await session.connect()
        await con.execute("CREATE TABLE failovers (x int)")
        await con.execute("INSERT INTO failovers VALUES (1)")
        await con.commit()
        _follow(cluster, standby)
        await con.execute("INSERT INTO failovers VALUES (2)")
        cluster.stop(signal.SIGQUIT)
        stage.wait("gone")
        standby.promote()
        again = await stage.open(url=url)
        assert again.level == "lost" and again.verdict.reason
        con = await again.connect()
        assert await one(con, "SELECT array_agg(x) FROM failovers") == ([1],), "what was committed, and no more"
        await con.execute("INSERT INTO failovers VALUES (3)")
        await con.commit()
        await con.close()
    finally:
        if standby is not None:
            standby.remove()
        cluster.remove()


def _follow(cluster: Cluster, standby: Cluster) -> None:
    """Return when the standby has all that the primary has."""
    with psycopg.connect(cluster.admin(), autocommit=True) as primary:
        (written,) = primary.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone() or (0,)
    until(lambda: _replayed(standby, int(written)))


def _replayed(standby: Cluster, position: int) -> bool:
    try:
        with psycopg.connect(standby.admin(), autocommit=True) as follower:
            asked = "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn >= %s"
            return (follower.execute(asked, [position]).fetchone() or (False,))[0] is True
    except psycopg.OperationalError:
        return False  # not up yet


async def test_a_schema_that_changes_under_a_kept_session_is_the_statements_error_not_the_sessions_end(
    stage: Stage,
) -> None:
    stage.outside("CREATE TABLE changing (x int)")
    session = await stage.open()
    con = await session.connect(autocommit=True)
    for _ in range(2):
        await con.execute("SELECT * FROM changing", prepare=True)
    pid = session.backend_pid
    stage.outside("ALTER TABLE changing ADD COLUMN y int")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan"):
        await con.execute("SELECT * FROM changing", prepare=True)
    await con.close()
    again = await stage.open()
    con = await again.connect(autocommit=True)
    assert (again.level, again.backend_pid) == ("kept", pid)
    assert await one(con, "SELECT count(*) FROM changing WHERE y IS NULL") == (0,)
    await con.close()


@pytest.mark.req("R98")
async def test_a_minute_without_the_server_is_ridden_out(stage: Stage, cluster: Cluster, clock: MovableClock) -> None:
    """As a network that is away looks: nothing answers, nothing is closed."""
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await stage.open(url=make_conninfo(**cluster.url("app")))
    con = await session.connect()
    before = await one(con, "SELECT txid_current()")
    os.kill(session.backend_pid, signal.SIGSTOP)
    try:
        answer = asyncio.ensure_future(one(con, "SELECT txid_current()"))
        while not session.refresh()["busy"]:
            await asyncio.sleep(0)
        clock.advance(seconds=60)
        assert session.refresh()["gone"] is None
    finally:
        os.kill(session.backend_pid, signal.SIGCONT)
    assert await answer == before
    await con.close()


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


@contextlib.contextmanager
def encrypted_way(port: int, cert: Path, key: Path) -> Iterator[int]:
    """A port that speaks TLS as a server does, and passes on to a server that does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                threading.Thread(target=pass_on, args=(plain,), daemon=True).start()

    def pass_on(plain: socket.socket) -> None:
        with contextlib.suppress(OSError):
            plain.recv(8)
            plain.sendall(b"S")
            client = context.wrap_socket(plain, server_side=True)
            server = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            pump(server, client)

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


async def test_tls_is_verified_and_its_session_is_lost_with_the_proxy(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path)
    with encrypted_way(cluster.port, cert, key) as port:
        options = {**cluster.url("app"), "host": "localhost", "port": str(port), "sslmode": "verify-full"}
        with pytest.raises(SessionUnavailable, match=r"certificate|TLS"):
            await stage.open(url=make_conninfo(**options, sslrootcert="system"))
        url = make_conninfo(**options, sslrootcert=str(cert))
        session = await stage.open(url=url)
        assert any("encrypted" in told for told in (await stage.open(url=url)).verdict.do_not_assume)
        con = await session.connect(autocommit=True)
        rows = await (await con.execute("SELECT repeat('x', 1000) FROM generate_series(1, 3000)")).fetchall()
        assert len(rows) == 3000
        await con.close()
        stage.kill_proxy()
        again = await stage.open(url=url)
        assert again.level == "lost"
        assert "encrypted" in again.verdict.reason
        await session.end()


async def test_a_server_without_tls_is_refused_when_tls_is_asked_for(stage: Stage, cluster: Cluster) -> None:
    with pytest.raises(SessionUnavailable, match="does not offer TLS"):
        await stage.open(url=make_conninfo(**cluster.url("app", sslmode="require")))
    with pytest.raises(SessionUnavailable, match="channel_binding"):
        await stage.open(url=make_conninfo(**cluster.url("app", channel_binding="require")))
