"""A server whose store goes away and comes back: it says so while it lasts, and nobody has to restart it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from perdure import Perdure
from tests.sessions.cluster import Cluster
from tests.support.http_server import Reply, make_key, serving
from tests.support.server_processes import LiveServer, live_server
from tests.support.waiting import look_again_here


class Place(NamedTuple):
    """A store that can be taken away."""

    url: str
    take_away: Callable[[], None]
    bring_back: Callable[[], None]
    is_cut_off: bool  # a server that has it open notices


@contextmanager
def stopped_postgres(how: signal.Signals) -> Iterator[Place]:
    cluster = Cluster()
    try:
        yield Place(
            f"postgresql://postgres@/postgres?host={cluster.socket}&port={cluster.port}",
            lambda: cluster.stop(how),
            cluster.start,
            is_cut_off=True,
        )
    finally:
        cluster.remove()


@contextmanager
def renamed_folder(parent: Path) -> Iterator[Place]:
    folder, elsewhere = parent / "store", parent / "elsewhere"

    def take_away() -> None:
        folder.rename(elsewhere)

    def bring_back() -> None:
        elsewhere.rename(folder)

    yield Place(f"sqlite://{folder}/p.db", take_away, bring_back, is_cut_off=False)


@pytest.fixture(params=["postgres-stopped", "postgres-killed", "sqlite-renamed"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    match request.param:
        case "postgres-stopped":
            store = stopped_postgres(signal.SIGINT)
        case "postgres-killed":
            store = stopped_postgres(signal.SIGQUIT)
        case _:
            store = renamed_folder(tmp_path)
    with store as found:
        yield found


async def key_of(url: str) -> str:
    async with serving(url) as server:
        await server.app_of("default").tasks.create("before", state={"n": 1})
        return await make_key(server, "admin")


def test_a_server_without_its_store_answers_503_and_goes_on_when_it_is_back(place):
    key = asyncio.run(key_of(place.url))
    with live_server(place.url, command="serve") as server:

        def ask(method: str, path: str, body: object = None, **headers: str) -> Reply:
            content = b"" if body is None else json.dumps(body).encode()
            kind = {"Content_Type": "application/json"} if content else {}
            return server.ask(method, path, content, Authorization=f"Bearer {key}", **kind, **headers)

        def make(id: str) -> Reply:
            return ask("POST", "/v1/tasks", {"id": id, "state": {}}, Idempotency_Key=id)

        assert (ask("GET", "/v1/tasks/before").status, make("first").status) == (200, 201)
        place.take_away()
        answers = {"read": ask("GET", "/v1/tasks/before"), "list": ask("GET", "/v1/tasks"), "made": make("second")}
        ready = server.ask("GET", "/readyz")
        assert server.ask("GET", "/healthz").status == 200
        for name, reply in answers.items():
            assert reply.status == 503 or (reply.status < 300 and not place.is_cut_off), (
                name,
                reply.status,
                reply.body,
            )
            if reply.status == 503:
                assert reply.headers["retry-after"] and reply.json["retryable"] and reply.json["kept"], name
                assert b"p.db" not in reply.body and b"postgresql" not in reply.body
        assert ready.status == 503 or not place.is_cut_off
        place.bring_back()
        while server.ask("GET", "/readyz").status != 200:
            look_again_here()
        while (again := make("second")).status in (503, 409):
            look_again_here()
        assert again.status == 201, again.body
        assert ask("GET", "/v1/tasks/before").status == 200
        found = {item["id"] for item in ask("GET", "/v1/tasks").json["items"]}
        assert found == {"before", "first", "second"}
        assert server.process.poll() is None


def test_a_client_waits_for_a_store_that_is_away(tmp_path):
    with stopped_postgres(signal.SIGINT) as place:
        key = asyncio.run(key_of(place.url))
        with live_server(place.url, command="serve") as server:
            asyncio.run(_write_through(place, server, key))


async def _write_through(place: Place, server: LiveServer, key: str) -> None:
    async with Perdure(f"http://{server.host}", key=key) as app:
        task = await app.tasks.open("before", state={})
        await asyncio.to_thread(place.take_away)
        writing = asyncio.ensure_future(task.complete({"n": 2}))
        while await asyncio.to_thread(lambda: server.ask("GET", "/readyz").status) != 503:
            pass
        await asyncio.to_thread(place.bring_back)
        await writing
        record = await task.record()
        assert (record.status, record.result) == ("completed", {"n": 2})
