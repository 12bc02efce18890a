"""A session that is logged in has forgotten its password: in its memory, and in what it was started with."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

import psycopg
import pytest

from perdure._runtime.sessions.session_processes import ask
from perdure.keeper.session.holder import wipe
from tests.runtime.kit import Place
from tests.sessions.cluster import Cluster

pytestmark = [pytest.mark.req("R142"), pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]
PASSWORD = "hunter22-of-a-kept-session"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        yield made
    finally:
        made.remove()


def regions(pid: int) -> Iterator[bytes]:
    """The memory of a process that it can write to: heap, stacks, what it has mapped."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if found:
                start, end = int(found[1], 16), int(found[2], 16)
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(start)
                    yield memory.read(end - start)


def descriptors(pid: int) -> Iterator[bytes]:
    """What can be read from its open files, those in memory too."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        with contextlib.suppress(OSError):
            if os.path.isfile(path):
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    yield os.pread(fd, 1 << 22, 0)
                finally:
                    os.close(fd)


async def test_a_session_that_is_logged_in_has_no_password(place: Place, cluster: Cluster) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to look into the memory of a process that hides it")
    with psycopg.connect(cluster.admin(), autocommit=True) as connection:
        connection.execute("SET password_encryption = 'scram-sha-256'")
        connection.execute(f"ALTER ROLE app PASSWORD '{PASSWORD}'")
    options = cluster.url("app", PASSWORD)
    dsn = " ".join(f"{name}='{value}'" for name, value in options.items())
    async with place.runtime() as rt:
        session = await rt.postgres("main", dsn, hold="10m")
        await (await session.connect()).execute("SELECT 1")
        told = ask(session.folder, {"ask": "state"})
        assert told is not None
        proxy, secret = told["proxy"], PASSWORD.encode()
        assert not [part for part in descriptors(proxy) if secret in part], "standard input still has it"
        assert sum(part.count(secret) for part in regions(proxy)) == 0, "its memory still has it"
        for place_of in (place.home, session.folder):
            files = [file for file in place_of.rglob("*") if file.is_file()]
            assert not [file for file in files if secret in file.read_bytes()]


def test_a_text_is_overwritten_and_one_that_all_share_is_not() -> None:
    text, data = "".join(["hunter", "22"]), b"".join([b"hunter", b"22"])
    wipe(text)
    wipe(data)
    assert text == "\0" * 8 and data == bytes(8)
    wipe("a"[:1])
    assert chr(97) == "a"
