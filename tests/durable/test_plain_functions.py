"""Durable functions that are a plain `def`, with the names of `perdure.sync`: what async ones await, they wait for."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure import sync
from perdure._durable.attempt.unwinding import Unwinding
from perdure._ground.bridge import Nap, drive
from perdure.errors import InvalidInput, NoTask, Rejected
from perdure.sync import (
    Perdure,
    budgets,
    carry_over,
    checkpoint,
    durable,
    effect,
    idempotency_key,
    loops,
    pause,
    recorded,
    signals,
    span,
    step,
    stream,
    timeout,
)
from perdure.sync.signals import instruction
from perdure.sync.streams import read_stream
from perdure.sync.types import Handle
from tests.durable.effects_kit import wait_until
from tests.support.fixtures import emptied_for_each_test
from tests.support.processes import Link, Nursery

ran: list[Any] = []


_nothing_ran = emptied_for_each_test(ran)


def until(found: Callable[[], Any]) -> None:
    while not found():
        drive(_a_moment())


async def _a_moment() -> None:
    await Nap(0.005)


def is_asked(app: Perdure, id: str, message: str) -> None:
    def is_there() -> bool:
        record = app.tasks.get(id)
        return record is not None and record.pause is not None and message in record.pause.message

    until(is_there)


@step
def look(number: int) -> int:
    ran.append(number)
    return number * 2


@effect
def send(to: str) -> str:
    ran.append(f"sent to {to}")
    return idempotency_key()


# ── the same names ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R147")
def test_perdure_sync_has_every_public_name_of_perdure_and_none_of_them_is_to_be_awaited() -> None:
    assert {*perdure.__all__} - {*sync.__all__} == {"sync", "testing"}
    without_twin = {"get_many", "publish", "published", "verify_resumable"}
    for name in sorted({*sync.__all__} - {"errors"}):
        found = getattr(sync, name)
        if inspect.ismodule(found):
            names = {*getattr(perdure, name).__all__}
            assert names - {*found.__all__} <= without_twin, name
            members = [getattr(found, one) for one in found.__all__]
        else:
            members = [found]
        assert [one for one in members if is_awaited(one)] == [], name


def is_awaited(found: object) -> bool:
    """True if a function, or a public method of a class for blocking code, is to be awaited."""
    if inspect.isfunction(found):
        return inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)
    if inspect.isclass(found) and found.__module__.startswith("perdure.sync"):
        return any(is_awaited(member) for _, member in inspect.getmembers(found, inspect.isfunction))
    return False


@pytest.mark.parametrize("written", [sync.Perdure, sync.types.Handle, sync.memory.Memory], ids=lambda cls: cls.__name__)
def test_the_classes_that_are_written_by_hand_have_the_parameters_of_the_async_ones(written: type) -> None:
    homes = {"Perdure": perdure.Perdure, "Handle": perdure.types.Handle, "Memory": perdure.memory.Memory}
    given = homes[written.__name__]
    for name, method in inspect.getmembers(given, inspect.isfunction):
        if not name.startswith("_"):
            blocking = inspect.signature(getattr(written, name)).parameters
            assert list(blocking) == list(inspect.signature(method).parameters), name


def test_a_name_that_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"perdure\.sync"):
        sync.nothing_of_the_kind  # noqa: B018


# ── a walk through all of them ───────────────────────────────────────────────────────────────────


@durable
def plain_child(number: int) -> int:
    return look(number)


def pieces(prefix: str) -> Iterator[str]:
    yield from ("one ", "two ", "three")[len(str(prefix).split()) :]


def is_there() -> int | None:
    ran.append("check")
    return 5 if ran.count("check") > 1 else None


@step
def copies(path: str) -> int:
    done = 0
    with loops.appending(path) as out:
        for line in loops.each(["a", "b", "c"][out.done :]):
            out.write(line)
            done += 1
    return done


_app: list[Perdure] = []


@durable
def plain_journey(path: str) -> dict[str, Any]:
    found: dict[str, Any] = {"looked": look(1)}
    with span("research"):
        look(2)
    found["name"] = pause.input("name?", str)
    try:
        pause.approval("first?")
    except Rejected as no:
        found["no"] = no.by
    found["yes"] = pause.approval("second?").by
    found["key"] = send(found["name"])
    found["signal"] = signals.next("go", int)
    found["text"] = "".join(stream("answer", pieces))
    found["poll"] = pause.poll(is_there, every=timedelta(milliseconds=100))
    kid: Handle[int] = _app[0].start("kid", plain_child, 3)
    found["kid"] = kid.result()
    found["task"] = pause.task("kid")
    found["goal"] = instruction("the first")
    found["copied"] = copies(path)
    found["again"] = recorded.now() == recorded.now()
    pause.yield_now()
    pause.wait(seconds=0.001)
    return found


def test_a_plain_function_pauses_and_goes_on_as_an_async_one_does(shared_url: str, tmp_path: Path) -> None:
    with Perdure(shared_url) as app:
        _app[:] = [app]
        with app.worker():
            handle = app.start("job", plain_journey, str(tmp_path / "out.txt"))
            task = handle.task()
            is_asked(app, "job", "name?")
            task.answer("bob", by="ada")
            is_asked(app, "job", "first?")
            task.reject(by="eve")
            is_asked(app, "job", "second?")
            task.approve(by="ada")
            is_asked(app, "job", "signal 'go'")
            task.signal("go", 7)
            found = handle.result()
        assert found | {"key": "", "again": None} == {
            "looked": 2, "name": "bob", "no": "eve", "yes": "ada", "key": "", "signal": 7, "text": "one two three",
            "poll": 5, "kid": 6, "task": 6, "goal": "the first", "copied": 3, "again": None,
        }  # fmt: skip
        assert [one for one in ran if one != "check"] == [1, 2, "sent to bob", 3]  # each once, however often replayed
        assert (tmp_path / "out.txt").read_text() == "abc"
        assert [cp.label for cp in task.checkpoints() if cp.label] == ["research"]
        assert read_stream(app, "job", "answer").text == "one two three"
        assert handle.is_done() and app.handle("job", plain_journey).result() == found


@durable(name="plain rounds")
def rounds(number: int) -> int:
    state = checkpoint.last({"page": 0})
    while state["page"] < 2:
        look(state["page"])
        state["page"] += 1
        checkpoint.save(state)
    if number < 2:
        carry_over(number + 1)
    return number


def test_a_plain_function_saves_and_carries_over(shared_url: str) -> None:
    with Perdure(shared_url) as app:
        assert app.run("job", rounds, 0) == 2
        assert ran[:2] == [0, 1]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def test_the_blocking_names_are_refused_on_an_event_loop_and_without_a_task(shared_url: str) -> None:
    @perdure.durable
    async def awaits() -> str:
        try:
            pause.input("name?", str)
        except InvalidInput as error:
            return f"{error.what}; {error.do}"
        return "it waited"

    with Perdure(shared_url) as app:
        assert "import the same name from perdure, and await it" in app.run("job", awaits)
    with pytest.raises(NoTask):
        pause.input("name?", str)
    with pytest.raises(InvalidInput, match="nothing can cut off"):
        timeout(3)


def test_a_pause_is_not_swallowed_by_a_plain_functions_except(shared_url: str) -> None:
    @durable
    def catches() -> str:
        try:
            return pause.input("name?", str)
        except Exception:
            return "swallowed"

    with Perdure(shared_url) as app, app.worker():
        handle = app.start("job", catches)
        is_asked(app, "job", "name?")
        handle.task().answer("bob", by="ada")
        assert handle.result() == "bob"


def test_a_plain_handler_is_told_by_the_blocking_worker(shared_url: str) -> None:
    heard = threading.Event()
    with Perdure(shared_url) as app:

        @app.on("completed")
        def tell(event: Any) -> None:
            heard.set()

        with app.worker():
            app.start("job", plain_child, 3).result()
            assert heard.wait(20)


@step
def waits_for(gate: str) -> int:
    ran.append("began")
    with open(gate, "rb") as opened:  # somebody opens the other end
        opened.read()
    ran.append("ended")
    return 7


@durable
def one_long_step(gate: str) -> int:
    return waits_for(gate) + look(1)


@pytest.mark.req("R39")
async def test_a_worker_that_leaves_lets_a_plain_step_end_and_keeps_its_result(
    shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    drain = Unwinding.drain
    monkeypatch.setattr(Unwinding, "drain", lambda self: (looks.append(None), drain(self)))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with perdure.Perdure(shared_url) as app:
        handle = await app.start("job", one_long_step, str(gate))
        worker: Any = app.worker(grace=timedelta(seconds=60))
        async with worker:
            await wait_until(lambda: ran == ["began"])
            worker.ask_to_drain()
            await wait_until(lambda: len(looks) > 3)
            gate.write_bytes(b"x")
            await worker.drained.wait()
        assert ran == ["began", "ended"]
        async with app.worker():
            assert await handle.result() == 9
        assert ran.count("began") == 1, "it was recorded, and not run again"


# ── real deaths ──────────────────────────────────────────────────────────────────────────────────


@effect(keyed=True)
def note(file: str, line: str) -> int:
    with open(file, "a", encoding="utf-8") as out:
        out.write(f"{idempotency_key()} {line}\n")
    return os.getpid()


@durable
def two_notes(file: str) -> str:
    note(file, "first")
    name = pause.input("name?", str)
    note(file, name)
    budgets.spend(tokens=1)
    pause.input("and now?", str)
    return name


def carry(link: Link, url: str, file: str) -> None:
    with Perdure(url) as app, app.worker():
        handle = app.start("job", two_notes, file)
        link.send(("said", "ready"))
        link.send(("said", handle.result()))


def test_a_plain_function_whose_process_was_killed_goes_on_in_another(
    shared_url: str, children: Nursery, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    with Perdure(shared_url) as app:
        first = children.start(carry, shared_url, str(file))
        is_asked(app, "job", "name?")
        first.kill()
        app.tasks.handle("job").answer("bob", by="ada")
        second = children.start(carry, shared_url, str(file))
        is_asked(app, "job", "and now?")
        second.kill()
        app.tasks.handle("job").answer("done", by="ada")
        third = children.start(carry, shared_url, str(file))
        assert third.heard() == "ready" and third.heard() == "bob"
        third.kill()
    assert [line.split()[1] for line in file.read_text().splitlines()] == ["first", "bob"]


def test_a_plain_function_that_awaits_on_a_loop_of_its_own_is_told_what_to_do(tmp_path: Path) -> None:
    ran: list[str] = []

    @step
    async def fetch() -> None:
        ran.append("fetch")

    @effect
    async def send() -> None:
        ran.append("send")

    @durable
    def work(which: str) -> None:
        asyncio.run({"fetch": fetch, "send": send}[which]())

    with Perdure(f"sqlite://{tmp_path}/perdure.db") as app:
        for which in ("fetch", "send"):
            with pytest.raises(InvalidInput, match=f"{which} is awaited on another event loop") as refused:
                app.run(which, work, which)
            assert f"make {which} a plain def" in refused.value.do
            assert not app.effects.of(which)
    assert ran == []


def test_a_notebook_with_a_running_loop_carries_out_a_plain_function(shared_url: str) -> None:
    async def cell() -> int:
        with Perdure(shared_url) as app:
            return app.run("job", plain_child, 4)

    assert asyncio.run(cell()) == 8


def test_an_interrupted_cell_of_a_notebook_ends_its_run_and_the_next_goes_on(shared_url: str) -> None:
    interrupted = threading.Event()

    @perdure.step
    async def wait_for_ever() -> int:
        if not interrupted.is_set():
            interrupted.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.wait_for(asyncio.Event().wait(), 120)
        return 1

    @perdure.durable
    async def interrupted_cell() -> int:
        return await wait_for_ever()

    async def cell() -> Any:
        with Perdure(shared_url) as app:
            with pytest.raises(KeyboardInterrupt):
                app.run("job", interrupted_cell)
            record = app.tasks.get("job")
            assert record is not None
            return record.status, record.attempts[-1].ended, app.run("job", interrupted_cell)

    with closing(asyncio.new_event_loop()) as loop:  # not asyncio.run: as in a notebook, Ctrl-C is KeyboardInterrupt
        assert loop.run_until_complete(cell()) == ("running", "interrupted: CancelledError", 1)


def test_an_error_of_blocking_code_names_no_error_of_ours_as_its_context(tmp_path: Path) -> None:
    @durable
    def work() -> None:
        raise ValueError("no such page")

    with Perdure(tmp_path / "p.db") as app, pytest.raises(ValueError, match="no such page") as raised:
        app.run("t", work)
    assert raised.value.__context__ is None
