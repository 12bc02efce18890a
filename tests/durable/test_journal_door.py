"""`app.journal`: what a durable function has done, as columns, page by page, call by call, and while it works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec
import pytest

from perdure import Perdure, Retry, carry_over, durable, effect, pause, step
from perdure._durable.journal import outline as outlines
from perdure._store import Row, Store
from perdure._tasks import store_of
from perdure.errors import InvalidInput, NotFound
from perdure.types import Outline
from tests.support.journals import calls_of

LONG = "someone whose name is longer than a digest can hold"


@step
async def read(number: int) -> str:
    return f"page {number}"


@effect(undo=lambda result, number, who: None)
async def send(number: int, who: str) -> int:
    return number * 10


@step
async def fail(word: str) -> None:
    raise ValueError(f"no {word}")


@durable
async def report(pages: int, question: bool = False) -> int:
    for number in range(pages):
        await read(number)
    await send(pages, LONG)
    with contextlib.suppress(ValueError):
        await fail("luck")
    if question:
        await pause.input("and now?", str)
    return pages


async def until_paused(app: Perdure, id: str, pages: int = 3) -> None:
    await app.run_until_paused(id, report, pages, True)


def rows_of(found: Outline) -> list[tuple[int, str, str, str]]:
    return [
        (found.position[at], found.names[found.name[at]], found.ops[found.op[at]], found.state[at])
        for at in range(len(found.position))
    ]


async def test_an_outline_has_each_call_once_as_columns(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t")
        found = await app.journal.outline("t")
        assert rows_of(found) == [
            (1, "read", "step", "d"),
            (2, "read", "step", "d"),
            (3, "read", "step", "d"),
            (5, "send", "effect", "d"),
            (6, "fail", "step", "r"),
            (0, "pause.input", "pause", "p"),
        ]
        columns = (found.start, found.took, found.scope, found.depth)
        assert all(len(column) == 6 for column in columns) and found.upto == 6
        assert [(one.number, one.ended) for one in found.attempts] == [(1, "paused")]
        assert msgspec.json.decode(msgspec.json.encode(found), type=Outline) == found
        assert (await app.journal.outline("t")).etag == found.etag
        await (await app.tasks.handle("t")).answer("go on", by="ada")
        await app.run("t", report, 3, True)
        later = await app.journal.outline("t")
        assert later.etag != found.etag and later.state == "ddddrd"


async def test_a_page_shows_arguments_and_results_on_one_line(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("t", report, 3)
        calls = await calls_of(app, "t")
        assert [(one.call, one.returned) for one in calls] == [
            ("read(0)", "'page 0'"),
            ("read(1)", "'page 1'"),
            ("read(2)", "'page 2'"),
            (f"send(3, {LONG!r})", "30"),
            ("fail('luck')", ""),
        ]
        assert calls[-1].error is not None and calls[-1].error.message == "no luck"


async def test_pages_have_every_call_once_whatever_their_length(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", 60)
        whole = await calls_of(app, "t")
        assert len(whole) == 63
        for limit in (1, 2, 7, 25, 62, 63, 64):
            found, cursor = [], "0"
            while cursor is not None:
                page = await app.journal.page("t", after=int(cursor), limit=limit)
                assert len(page) <= limit or page.cursor is None
                found, cursor = [*found, *page.items], page.cursor
            assert found == whole, limit


async def test_a_page_is_narrowed_by_kind_state_and_text(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", 30)
        page = app.journal.page
        assert [one.path for one in await page("t", kind="effect")] == ["send#1"]
        assert [one.path for one in await page("t", state="raised")] == ["fail#1"]
        assert [one.path for one in await page("t", state="pausing")] == ["pause.input#1"]
        assert [one.position for one in await page("t", text="PAGE 2", limit=3)] == [3, 21, 22]
        assert [one.path for one in await page("t", text="no luck")] == ["fail#1"]
        assert list(await page("t", kind="child")) == []


async def test_an_effect_shown_apart_from_its_intent_still_says_how_it_was_called(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("t", report, 3)
        (call,) = (await app.journal.page("t", after=4, limit=1)).items
        assert (call.position, call.call) == (5, f"send(3, {LONG!r})")


async def test_a_call_that_ends_on_a_later_page_is_not_shown_as_open_before(url: str) -> None:
    @effect(name="slow")
    async def slow(gate: list[asyncio.Event]) -> str:
        await opened.wait()
        return "done"

    opened = asyncio.Event()

    @durable(name="apart")
    async def apart() -> list[str]:
        async def many() -> str:
            for number in range(150):
                await read(number)
            opened.set()
            return "many"

        return list(await asyncio.gather(slow([]), many()))

    async with Perdure(url) as app:
        await app.run("t", apart)
        first = await app.journal.page("t", limit=20)
        assert [one.state for one in first] == ["done"] * 20 and "slow#1" not in [one.path for one in first]
        (found,) = (await app.journal.page("t", kind="effect")).items
        assert (found.name, found.state) == ("slow", "done") and found.scope.startswith("/")
        outline = await app.journal.outline("t")
        assert set(outline.state) == {"d"} and max(outline.depth) == 1


async def test_one_call_is_given_whole(url: str) -> None:
    tried: list[int] = []

    @step(name="stubborn", retry=Retry(3, wait="1ms"))
    async def stubborn(word: str) -> dict[str, object]:
        tried.append(1)
        if len(tried) < 3:
            raise OSError(f"try {len(tried)}")
        return {"word": word, "data": b"\0\1", "password": "hunter2-and-more"}

    @durable(name="whole")
    async def whole() -> None:
        await stubborn("go")
        await send(1, LONG)

    async with Perdure(url) as app:
        await app.run("t", whole)
        found = await app.journal.entry("t", None, 3)
        assert (found.path, found.state, found.arguments) == ("stubborn#1", "done", {"args": ["go"], "kwargs": {}})
        assert found.value == {"word": "go", "data": "<2 bytes>", "password": "[secret]"}
        assert [(one.number, one.error.message) for one in found.tries] == [(1, "try 1"), (2, "try 2")]
        assert (await app.journal.entry("t", 1, 1)).path == "stubborn#1"  # the entry of its first try
        sent = await app.journal.entry("t", 1, 4)  # its intent
        assert (sent.position, sent.value, sent.arguments) == (5, 10, None) and sent.key.startswith("prd-")
        (index, moments), *_ = (await app.journal.outline("t")).tries
        assert index == 0 and len(moments) == 2
        for line, position in ((None, 0), (None, 6), (2, 1)):
            with pytest.raises(NotFound):
                await app.journal.entry("t", line, position)


@durable
async def rounds(number: int) -> int:
    await read(number)
    if number < 2:
        await carry_over(number + 1)
    return number


async def test_each_line_of_a_journal_can_be_read(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("t", rounds, 0)
        assert [(one.line, one.why) for one in await app.journal.lines("t")] == [
            (1, "begun"),
            (2, "carry_over"),
            (3, "carry_over"),
        ]
        for line in (1, 2, 3):
            (call,) = (await app.journal.page("t", line)).items
            assert call.call == f"read({line - 1})"
            assert (await app.journal.outline("t", line)).line == line
        assert (await app.journal.outline("t")).line == 3
        with pytest.raises(NotFound):
            await app.journal.page("t", 4)


async def test_the_news_of_a_journal_are_read_entry_by_entry_across_its_lines(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("t", rounds, 0)
        end = await app.journal.end_of("t")
        line, position, calls = 1, 0, []
        while (line, position) != end:
            news = await app.journal.since("t", line, position, limit=1)
            calls += [(line, call.call) for call in news.calls]
            assert (news.line, news.upto) > (line, position)
            line, position = news.line, news.upto
        assert calls == [(1, "read(0)"), (2, "read(1)"), (3, "read(2)")]
        last = await app.journal.since("t", *end)
        assert (last.calls, last.line, last.upto, last.more) == ((), *end, False)


async def test_a_damaged_entry_is_shown_as_such_and_the_rest_as_it_is(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        await app.run("t", report, 30)
        _spoil(store_of(app.tasks), monkeypatch, damaged=7, missing=12)
        found = await app.journal.outline("t")
        assert [position for position, *_, state in rows_of(found) if state == "x"] == [7, 12]
        assert len(found.position) == 32
        calls = await calls_of(app, "t")
        assert [one.position for one in calls if one.state == "damaged"] == [7, 12] and len(calls) == 32
        assert [one.position for one in await app.journal.page("t", after=5, limit=3)] == [6, 7, 8]
        assert (await app.journal.entry("t", None, 7)).state == "damaged"
        assert [one.position async for one in app.journal.tail("t", None, 5)][:3] == [6, 7, 8]


def _spoil(store: Store, monkeypatch: pytest.MonkeyPatch, *, damaged: int, missing: int) -> None:
    """Have the store give one entry with a flipped bit, and another not at all."""
    query = store.engine.query

    def spoilt(name: str, params: Mapping[str, object]) -> list[Row]:
        rows = query(name, params)
        if name == "read_entry" and params["position"] == damaged:
            return [(_flipped(row[0]),) for row in rows]
        if name not in ("read_journal", "read_journal_page"):
            return rows
        kept = [row for row in rows if row[0] != missing]
        return [(position, _flipped(entry) if position == damaged else entry) for position, entry in kept]

    monkeypatch.setattr(store.engine, "query", spoilt)


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


async def test_a_follower_gets_every_call_until_the_task_ends(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t")
        seen = []

        async def follow() -> None:
            async for call in app.journal.tail("t"):
                seen.append((call.position, call.path))
                heard.set()

        heard = asyncio.Event()
        following = asyncio.create_task(follow())
        await heard.wait()
        await (await app.tasks.handle("t")).answer("go on", by="ada")
        await app.run("t", report, 3, True)
        await following
        assert seen == [
            *((1, "read#1"), (2, "read#2"), (3, "read#3")),
            *((5, "send#1"), (6, "fail#1"), (7, "pause.input#1")),
        ]


async def test_an_outline_of_very_many_calls_has_counts_and_the_odd_ones(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines, "MOST_CALLS", 20)
    async with Perdure(quick_url) as app:
        await app.run("t", report, 30)
        found = await app.journal.outline("t")
        assert found.binned is not None and sum(found.binned.count) == 32
        assert found.state == "r" and len(found.position) == 1


async def test_an_effect_nobody_knows_the_end_of_is_uncertain(url: str) -> None:
    @effect(name="lost", on_uncertain="ask")
    async def lost(word: str) -> None:
        raise ConnectionError("cut off")

    @durable(name="doubtful")
    async def doubtful() -> None:
        await lost("x")

    async with Perdure(url) as app:
        await app.run_until_paused("t", doubtful)
        assert (await app.journal.outline("t")).state == "u"
        assert [one.state for one in await calls_of(app, "t")] == ["uncertain"]
        await app.effects.settle("t", "done", by="ada")
        assert [one.state for one in await calls_of(app, "t")] == ["done"]


async def test_a_plain_task_has_an_empty_journal(url: str) -> None:
    async with Perdure(url) as app:
        await app.tasks.create("plain", state={})
        assert (await app.journal.outline("plain")).state == ""
        assert list(await app.journal.page("plain")) == [] and list(await app.journal.lines("plain")) == []
        with pytest.raises(NotFound):
            await app.journal.outline("nothing")


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 1001}, {"after": -1}, {"state": "odd"}, {"after": "3"}])
async def test_what_cannot_be_asked_for_is_refused(quick_url: str, asked: dict[str, object]) -> None:
    async with Perdure(quick_url) as app:
        await app.run("t", report, 1)
        with pytest.raises(InvalidInput):
            await app.journal.page("t", **asked)  # type: ignore[arg-type]
