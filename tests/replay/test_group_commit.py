"""Results ride to disk together; nothing that others can see ever depends on one that is not there yet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure._durable.attempt import pipeline as pipeline_module
from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.calls import step_walk as steps_module
from perdure._durable.attempt.driver import carry_out
from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import step
from perdure._durable.effects.effect_decorator import effect
from tests.replay.kit import Paper, new_attempt, play, until_rest


@step
async def short(n: int) -> int:
    return n


@step(flush=True)
async def flushed(n: int) -> int:
    return n


async def held(program: Any, paper: Paper) -> asyncio.Task[Any]:
    """The program, started, with a disk that does nothing until it is told to."""
    paper.holds_back = True
    playing = asyncio.create_task(play(program, paper=paper))
    await until_rest(50)
    return playing


async def end(playing: asyncio.Task[Any], paper: Paper) -> Any:
    while not playing.done():
        paper.let_go()
        await asyncio.sleep(0)
    return (await playing).result()


def shortest_wait(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for module in (pipeline_module, steps_module):
        monkeypatch.setattr(module, "SHORTEST_WAIT", seconds)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, no entry is too old."""
    monkeypatch.setattr(pipeline_module, "OLDEST_SECONDS", 3600.0)
    shortest_wait(monkeypatch, 3600.0)


async def test_short_steps_wait_for_no_disk(patient: None) -> None:
    ran: list[int] = []

    async def program() -> int:
        for n in range(100):
            ran.append(await short(n))
        return len(ran)

    paper = Paper()
    playing = await held(program, paper)
    assert len(ran) == 100 and paper.written == [] and not any(paper.urgent)
    assert await end(playing, paper) == 100


async def test_no_body_starts_with_more_than_256_entries_behind(patient: None) -> None:
    ran: list[int] = []

    @step
    async def work(n: int) -> int:
        ran.append(n)
        return n

    async def program() -> int:
        for n in range(600):
            await work(n)
        return len(ran)

    paper = Paper()
    playing = await held(program, paper)
    assert len(ran) == pipeline_module.MOST_UNFLUSHED + 1
    paper.let_go(100)
    await until_rest(50)
    assert len(ran) == pipeline_module.MOST_UNFLUSHED + 101
    assert await end(playing, paper) == 600


async def test_no_body_starts_once_an_entry_behind_has_become_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    shortest_wait(monkeypatch, 3600.0)
    for module in (pipeline_module, steps_module):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    ran: list[int] = []

    @step
    async def work(n: int) -> int:
        ran.append(n)
        now[0] += pipeline_module.OLDEST_SECONDS * 0.3
        return n

    async def program() -> int:
        for n in range(30):
            await work(n)
        return len(ran)

    paper = Paper()
    playing = await held(program, paper)
    assert ran == [0, 1, 2, 3, 4]  # the first was recorded at 0.3, and is 1.2 old at 1.5
    paper.let_go(3)
    await until_rest(50)
    assert ran == [0, 1, 2, 3, 4, 5, 6, 7]
    assert await end(playing, paper) == 30


async def test_what_an_earlier_pass_of_the_attempt_recorded_counts_as_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from perdure._model import Entry

    shortest_wait(monkeypatch, 3600.0)
    paper = Paper()
    paper.holds_back = True
    before: Attempt = new_attempt(paper=paper)
    _, write = before.record(Entry("result", "step", "|short#1", b"=\x91\x01", b"\x01"))
    write.since -= 2 * pipeline_module.OLDEST_SECONDS
    attempt = Attempt(before.store, before.fence, 1, (), {}, loop=before.loop)

    going_on = asyncio.create_task(carry_out(attempt, short, (2,), {}))
    await until_rest(50)
    assert not going_on.done()
    paper.let_go(1)
    await going_on


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_no_body_starts_with_an_entry_behind_that_is_too_old(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shortest_wait(monkeypatch, 3600.0)
    monkeypatch.setattr(pipeline_module, "OLDEST_SECONDS", -1.0)
    behind: list[int] = []
    paper = Paper()

    @step
    async def work(n: int) -> int:
        behind.append(len(paper.held))
        return n

    @step
    def plain(n: int) -> int:
        behind.append(len(paper.held))
        return n

    async def program() -> None:
        for n in range(5):
            await work(n) if kind == "async" else plain(n)

    playing = await held(program, paper)
    assert behind == [0] or kind == "plain"
    await end(playing, paper)
    assert behind == [0] * 5


async def test_a_step_that_took_longer_than_a_commit_waits_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shortest_wait(monkeypatch, -1.0)
    paper = Paper()
    paper.commit_seconds = -1.0
    got: list[int] = []

    async def program() -> None:
        got.append(await short(1))

    playing = await held(program, paper)
    assert got == [] and paper.urgent == [True]
    await end(playing, paper)
    assert got == [1]


async def test_flush_true_waits_and_flush_false_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []

    @step(flush=False)
    async def unhurried() -> str:
        return "unhurried"

    async def program() -> None:
        got.append(await unhurried())
        got.append(str(await flushed(1)))

    paper = Paper()
    paper.commit_seconds = -1.0
    shortest_wait(monkeypatch, -1.0)
    playing = await held(program, paper)
    assert got == ["unhurried"]
    await end(playing, paper)
    assert got == ["unhurried", "1"]


async def test_several_scopes_may_wait_for_the_same_entry(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "MOST_UNFLUSHED", 0)
    ran: list[int] = []

    @step
    async def work(n: int) -> int:
        ran.append(n)
        return n

    async def program() -> int:
        return sum(await asyncio.gather(*(work(n) for n in range(20))))

    paper = Paper()
    playing = await held(program, paper)
    assert ran == [0]
    assert await end(playing, paper) == 190


async def test_a_plain_flushed_step_waits_in_its_thread_without_taking_the_loops_turn() -> None:
    waits: list[bool] = []

    class Watched(Paper):
        def wait(self, write: Any, *, may_commit: bool = True) -> None:
            waits.append(may_commit)
            super().wait(write, may_commit=may_commit)

    @step(flush=True)
    def plain(n: int) -> int:
        return n

    @durable
    def in_thread() -> int:
        return plain(1)

    async def on_loop() -> int:
        return plain(1)

    assert (await play(on_loop, paper=Watched())).result() == 1
    assert (await play(in_thread, paper=Watched())).result() == 1
    assert waits == [False, True], "an event loop's thread never commits"


# ── on disk ──────────────────────────────────────────────────────────────────────────────────────


async def on_disk(path: Path) -> int:
    """How many entries another process would find now."""
    import apsw

    def count() -> int:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return int(connection.execute("SELECT count(*) FROM journal").fetchall()[0][0])
        finally:
            connection.close()

    return await asyncio.to_thread(count)


async def test_no_effect_pause_or_result_depends_on_a_step_that_is_not_on_disk(
    open_disk: Any, tmp_path: Path, patient: None
) -> None:
    file = tmp_path / "store" / "perdure.db"
    found: dict[str, int] = {}

    @effect
    async def pay(n: int) -> int:
        found["effect"] = await on_disk(file)
        return n

    @durable
    async def work() -> int:
        for n in range(50):
            await short(n)
        await pay(1)
        for n in range(50):
            await short(n)
        return 7

    async with open_disk() as app:
        assert await app.run("t", work) == 7
        found["result"] = await on_disk(file)
    assert found["effect"] >= 51, "fifty steps and the intent"
    assert found["result"] == 102


async def test_a_refused_entry_closes_the_attempt_at_its_next_call() -> None:
    """An entry that another attempt's epoch refuses: nothing more is recorded and no body starts."""
    from perdure.errors import LeaseLost

    ran: list[int] = []

    class Refusing(Paper):
        def submit(self, write: Any, *, urgent: bool = True) -> Any:
            if len(self.urgent) == 2:
                write.fence.close(LeaseLost("the-task", "another attempt has it"))
            return super().submit(write, urgent=urgent)

    @step
    async def work(n: int) -> int:
        ran.append(n)
        return n

    async def program() -> None:
        for n in range(10):
            await work(n)

    played = await play(program, paper=Refusing())
    assert isinstance(played.error, LeaseLost) and ran == [0, 1, 2]


async def test_two_threads_that_let_go_of_one_entry_do_not_let_go_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not on disk, and who flushes has to wait for it."""
    from perdure._model import Entry

    paper = Paper()
    attempt: Attempt = new_attempt(paper=paper)
    attempt.record(Entry("result", "inline", "|x#1", b""))
    paper.holds_back = True
    _, second = attempt.record(Entry("result", "inline", "|x#2", b""))
    monkeypatch.setattr(pipeline_module, "OLDEST_SECONDS", -1.0)

    class Raced(list[Any]):
        def __delitem__(self, places: Any) -> None:
            assert attempt.pipeline.behind() is second  # asked by the other thread, just before
            super().__delitem__(places)

    attempt.fence.unflushed = Raced(attempt.fence.unflushed)
    assert attempt.pipeline.behind() is second
    assert attempt.fence.unflushed == [second]

    flushing = asyncio.ensure_future(attempt.flush())
    await asyncio.sleep(0)
    assert not flushing.done()
    paper.let_go()
    await flushing


async def test_a_run_counts_positions_across_threads() -> None:
    from perdure._model import Entry

    attempt: Attempt = new_attempt()

    def many() -> None:
        for _ in range(200):
            attempt.record(Entry("result", "inline", "|x#1", b""))

    await asyncio.gather(*(asyncio.to_thread(many) for _ in range(4)))
    positions = [position for position, _ in attempt.store.committer.written]  # type: ignore[attr-defined]
    assert positions == list(range(1, 801))
