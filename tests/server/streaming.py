"""Clients of streams for the tests of this folder: server-sent events over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2

from perdure.server import make_app
from perdure.server.settings import Settings
from tests.support.asking import ALL, Known
from tests.support.live_server import listening

PATIENCE = 120.0


class Heard(NamedTuple):
    event: str
    data: Any
    id: str


@contextmanager
def a_server(url: str, scopes: frozenset[str] = ALL, **settings: Any) -> Iterator[tuple[str, Any]]:
    """The address of a server in this process that knows every caller, and the server."""
    server = make_app(url, Settings(**settings))
    server._guard, server._identity = None, Known(scopes)
    with listening(server) as address:
        yield address, server


@contextmanager
def hearing(address: str, path: str, after: str = "", **headers: str) -> Iterator[Iterator[Heard]]:
    """The events of a stream, as they come. It ends where the server ends it."""
    sent = {**headers, **({"Last-Event-ID": after} if after else {})}
    with (
        httpx2.Client(timeout=PATIENCE, trust_env=False) as client,
        client.stream("GET", f"{address}{path}", headers=sent) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[Heard]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            yield Heard("comment", line[1:].strip(), "")
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Heard(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
            fields = {}


def until(heard: Iterator[Heard], event: str, **data: Any) -> Heard:
    """The next event of this name whose data has these values."""
    for one in heard:
        if one.event == event and all(one.data.get(name) == value for name, value in data.items()):
            return one
    raise AssertionError(f"the stream ended before {event}")
