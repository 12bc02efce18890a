"""Durable functions through a server: a process with their code starts them and has their results as its own types."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, errors, sync
from perdure.server import make_app
from tests.support.asking import ALL, Known
from tests.support.live_server import listening

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guide/server.md").read_text(encoding="utf-8")
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@dataclass
class Parcel:
    name: str
    at: datetime
    after: timedelta = timedelta(0)


@durable
async def mail(parcel: Parcel, times: int = 1) -> list[Parcel]:
    return [Parcel(parcel.name, parcel.at + parcel.after, parcel.after)] * times


@durable
async def refuse(what: str) -> str:
    raise ValueError(f"no {what}")


@durable
async def untyped(value: Any) -> Any:
    return value


@durable
async def report_since(since: date) -> str:
    return f"since {since:%d %B}"


@pytest.fixture
def there(shared_url: str) -> Iterator[str]:
    server = make_app(shared_url)
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


async def test_a_function_is_started_through_a_server_and_its_result_is_of_its_type(there, shared_url):
    async with Perdure(there) as app, Perdure(shared_url) as at_store, at_store.worker():
        handle = await app.start("p1", mail.options(priority=3, timeout="1h"), Parcel("a", NOON, timedelta(hours=1)))
        assert await handle.result() == [Parcel("a", NOON + timedelta(hours=1), timedelta(hours=1))]
        assert await handle.is_done() and (await handle.task()).id == "p1"
        again = await app.start("p1", mail, Parcel("a", NOON, timedelta(hours=1)))  # attached to, however it was begun
        assert (await again.task()).uid == (await handle.task()).uid
        assert await (await app.handle("p1", mail)).result("30s") == await handle.result()
        exact = await app.start("p3", untyped, {"n": 2**63, "x": 1.5})
        assert await exact.result() == await (await at_store.handle("p3", untyped)).result()
        failing = await app.start("p2", refuse, what="money")
        with pytest.raises(ValueError, match="no money") as raised:
            await failing.result()
        assert any("failed with this earlier" in note for note in raised.value.__notes__)


async def test_what_a_server_cannot_do_as_asked_is_refused_and_nothing_is_begun(there, shared_url):
    async with Perdure(there) as app:
        for value in (b"bytes", {1, 2}, NOON, Parcel("a", NOON)):
            with pytest.raises(errors.NotStorable, match="JSON cannot hold it"):
                await app.start("t", untyped, value)
        for option in ({"debounce": "1m"}, {"singleton": True}, {"depends_on": ["other"]}, {"part_of": "other"}):
            with pytest.raises(errors.InvalidInput, match=next(iter(option))):
                await app.start("t", untyped.options(**option), 1)
        with pytest.raises(errors.InvalidInput, match="not a durable function"):
            await app.start("t", "untyped", 1)  # type: ignore[arg-type]
        with pytest.raises(errors.NotFound):
            await app.handle("t", untyped)
        assert await app.tasks.get("t") is None
        await app.start("t", untyped, {"n": [1, None, 2.5, "ü"]})
        with pytest.raises(errors.Conflict):
            await app.start("t", untyped, 2)
        with pytest.raises(errors.Conflict, match="untyped"):
            await app.handle("t", mail)
        await app.tasks.create("plain", state={})
        with pytest.raises(errors.Conflict, match="no durable function"):
            await app.handle("plain", mail)
        with pytest.raises(errors.TimedOut):
            await (await app.handle("t", untyped)).result("1ms")
        await (await app.tasks.handle("t")).cancel()
        with pytest.raises(errors.TaskFailed):
            await (await app.handle("t", untyped)).result()


def test_blocking_code_starts_functions_through_a_server(there, shared_url):
    with sync.Perdure(shared_url) as at_store, at_store.worker(), sync.Perdure(there) as app:
        handle = app.start("p1", mail, Parcel("a", NOON), times=2)
        assert handle.result("1m") == [Parcel("a", NOON)] * 2
        assert handle.is_done() and handle.task().status == "completed"
        assert app.handle("p1", mail).result() == handle.result()
        by_name = app.start_by_name("p2", mail.name, arguments={"parcel": {"name": "b", "at": NOON.isoformat()}})
        assert app.tasks.wait_for("p2").result[0]["name"] == "b" and by_name.id == "p2"


async def test_a_key_that_may_not_read_results_is_told_so(shared_url):
    server = make_app(shared_url)
    server._guard, server._identity = None, Known(ALL - {"data:read"})
    with listening(server) as address:
        async with Perdure(address) as app, Perdure(shared_url) as at_store, at_store.worker():
            for id, function, value in (("ok", untyped, {"secret": 1}), ("bad", refuse, "x")):
                handle = await app.start(id, function, value)
                with pytest.raises(errors.NotAllowed):
                    await handle.result()


async def test_the_lines_of_the_guide_start_a_function_and_print_its_result(there, shared_url, capsys):
    (lines,) = re.findall(r"test_client_functions.py -->\n```python\n(.*?)```", GUIDE, re.DOTALL)
    async with Perdure(there) as app, Perdure(shared_url) as at_store, at_store.worker():
        names: dict[str, Any] = {"app": app, "report": report_since, "date": date}
        exec("async def main():\n" + textwrap.indent(lines, "    "), names)
        await names["main"]()
    assert capsys.readouterr().out == "since 01 November\n"
