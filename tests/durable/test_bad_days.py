"""Bad input and bad days of durable functions: each works, or is refused with an error that says why."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, durable, effect, idempotency_key, pause, signals, step
from perdure._durable.journal.journal_reader import read_entries
from perdure._ground.secrets import envelope
from perdure.errors import InvalidInput, LeaseLost, NotStorable, ReplayDiverged, ResultNotStorable, TooLarge
from perdure.sync import progress as plain_progress
from tests.durable.effects_kit import Died, Places, World, ended, raising, until_paused, wait_until
from tests.support.fixtures import emptied_for_each_test

world = World()
ran: list[Any] = []


_nothing_happened = emptied_for_each_test(world.done, ran)


@step
async def note(value: Any) -> Any:
    ran.append(value)
    return value


@effect
async def touch(value: Any) -> str:
    return world.do(f"{value}", idempotency_key())


# ── what cannot be recorded ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "what",
    [(n for n in range(3)), lambda: 1, print, object(), [object()]],
    ids=["generator", "lambda", "builtin", "object", "list"],
)
@pytest.mark.parametrize("call", [note, touch], ids=["step", "effect"])
async def test_an_argument_that_cannot_be_compared_is_refused_and_nothing_runs(
    quick_url: str, what: Any, call: Any
) -> None:
    @durable
    async def asks() -> str:
        try:
            await call(what)
        except InvalidInput as error:
            return error.what
        return "it ran"

    async with Perdure(quick_url) as app:
        said = await app.run("job", asks)
        assert "cannot be recorded" in said and call.__name__ in said
        assert ran == [] and world.done == []


@pytest.mark.parametrize("decorate", [step, effect, durable])
def test_a_function_that_yields_is_refused_where_it_is_written(decorate: Any) -> None:
    def lines() -> Any:
        yield "one"

    async def chunks() -> Any:
        yield "one"

    for function in (lines, chunks):
        with pytest.raises(InvalidInput, match="yields"):
            decorate(function)


async def test_a_result_that_cannot_be_kept_names_its_path_and_an_effect_stays_done(quick_url: str) -> None:
    @step
    async def opens() -> Any:
        return {"a": {"b": object()}}

    @effect
    async def sends() -> Any:
        world.do("sent", idempotency_key())
        return {"a": {"b": object()}}

    @durable
    async def both() -> list[str]:
        with pytest.raises(NotStorable) as kept:
            await opens()
        with pytest.raises(ResultNotStorable) as done:
            await sends()
        return [kept.value.path, str(done.value.what)]

    async with Perdure(quick_url) as app:
        path, what = await app.run("job", both)
        assert path == "result of opens, a.b" and "a.b" in what
        (record,) = await app.effects.of("job")
        assert record.state == "done" and world.done == ["sent"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_result_of_a_hundred_megabytes_comes_back_or_is_refused_by_its_size(
    request: pytest.FixtureRequest, tmp_path: Any, engine: str
) -> None:
    url = str(request.getfixturevalue("postgres_url")) if engine == "postgres" else f"sqlite://{tmp_path}/p.db"
    size = 100 * 1024 * 1024

    @step
    async def large() -> bytes:
        ran.append("large")
        return bytes(size)

    @durable
    async def keeps() -> int:
        try:
            found = await large()
        except TooLarge:
            return -1
        await pause.input("go on?", str)
        return len(found)

    async with Perdure(url) as app:
        found = await until_paused(app, "job", keeps)
        if found != -1:
            await (await app.tasks.handle("job")).answer("yes")
            assert await app.run("job", keeps) == size
        assert ran == ["large"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_effect_whose_result_is_too_large_was_done_and_is_not_done_again(
    quick_url: str, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    monkeypatch.setattr(envelope, "MAX_BYTES", 100_000)

    def produced() -> bytes:
        world.do("sent", idempotency_key())
        return bytes(200_000)

    async def produced_on_loop() -> bytes:
        return produced()

    send: Any = effect(name="send")(produced_on_loop if is_async else produced)

    @durable
    async def sends() -> str:
        with pytest.raises(ResultNotStorable) as done:
            await send() if is_async else send()
        if len(world.done) == 1:
            world.done.append("died")
            raise Died
        return str(done.value.what)

    async with Perdure(quick_url) as app:
        assert isinstance(await ended(app, "job", sends), Died)
        assert "200," in await app.run("job", sends)
        assert world.done == ["sent", "died"]
        (record,) = await app.effects.of("job")
        assert record.state == "done"


# ── many, and deep ───────────────────────────────────────────────────────────────────────────────


async def test_ten_thousand_steps_at_once(quick_url: str) -> None:
    @step
    async def work(number: int) -> int:
        ran.append(number)
        await asyncio.sleep(0)
        return number

    @durable
    async def all_at_once() -> int:
        found = await asyncio.gather(*(work(number) for number in range(10_000)))
        await pause.input("go on?", str)
        return sum(found)

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", all_at_once)
        await (await app.tasks.handle("job")).answer("yes")
        assert await app.run("job", all_at_once) == sum(range(10_000))
        assert len(ran) == 10_000  # the replay ran none of them


async def test_a_durable_function_that_calls_itself(quick_url: str) -> None:
    @durable
    async def countdown(number: int) -> int:
        await note(number)
        return 0 if number == 0 else 1 + await countdown(number - 1)

    @durable
    async def children(number: int) -> int:
        if number == 0:
            return 0
        handle = await app.start(f"child-{number}", children, number - 1)
        return 1 + await handle.result()

    async with Perdure(quick_url) as app, app.worker():
        assert await app.run("deep", countdown, 50) == 50
        assert ran == list(range(50, -1, -1))
        assert await (await app.start("parent", children, 4)).result() == 4


# ── code that is another one each time ───────────────────────────────────────────────────────────


@pytest.mark.req("R69")
async def test_a_random_branch_diverges_and_never_gives_a_wrong_value(quick_url: str) -> None:
    way = iter(["left", "right"])

    @durable
    async def flips() -> str:
        side = next(way)
        found = await note(side)
        await touch(found)
        await pause.input("go on?", str)
        return str(found)

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", flips)
        await (await app.tasks.handle("job")).answer("yes")
        with pytest.raises(ReplayDiverged, match="'left'"):
            await app.run("job", flips)
        record = await app.tasks.get("job")
        assert record is not None and record.status == "paused"
        assert ran == ["left"] and world.done == ["left"]


# ── branches ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_in_one_branch_lets_the_effect_in_another_end_and_be_recorded(quick_url: str) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @effect
    async def slow() -> str:
        begun.set()
        await may_end.wait()
        return world.do("slow", idempotency_key())

    async def asking() -> str:
        try:
            return await pause.input("go on?", str)
        except Exception:
            return "eaten"

    @durable
    async def branches() -> list[str]:
        async with asyncio.TaskGroup() as group:
            one, other = group.create_task(slow()), group.create_task(asking())
        return [one.result(), other.result()]

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("job", branches))
        await begun.wait()
        task = await app.tasks.handle("job")
        await wait_until(lambda: _is_asked(app, task.uid))
        may_end.set()
        await app.tasks.wait_for("job", status="paused")
        assert [one.state for one in await app.effects.of("job")] == ["done"]
        await task.answer("yes")
        assert await work == ["receipt of slow", "yes"] and world.done == ["slow"]


async def _is_asked(app: Perdure, uid: str) -> bool:
    return bool(await app._store.query("read_pauses", uid=uid))


async def test_tasks_of_effects_are_named_by_their_effect(quick_url: str) -> None:
    @effect
    async def send(value: int) -> int:
        return value

    @durable
    async def side_by_side() -> list[int]:
        return list(await asyncio.gather(send(1), send(2), note(3)))

    async with Perdure(quick_url) as app:
        assert await app.run("job", side_by_side) == [1, 2, 3]
        task = await app.tasks.handle("job")
        scopes = {entry.path.split("|")[0] for _, entry in await read_entries(app._store, task.uid, 1)}
        assert scopes == {"/send#1", "/send#2", "/note#1"}


async def test_waiting_for_a_child_that_the_code_gave_up_is_cut_and_given_up_again(quick_url: str) -> None:
    gate = asyncio.Event()

    @step
    async def waits() -> None:
        await gate.wait()

    @durable
    async def child() -> None:
        await waits()

    @durable
    async def parent() -> str:
        handle = await app.start("child", child)
        try:
            async with asyncio.timeout(0.05):
                await handle.result()
        except TimeoutError:
            await pause.input("it takes long; go on?", str)
            return "gave up"
        return "had it"

    async with Perdure(quick_url) as app, app.worker():
        await until_paused(app, "parent", parent)
        gate.set()
        await app.tasks.wait_for("child")  # it has ended by now; the code had given up on it
        await (await app.tasks.handle("parent")).answer("yes")
        assert await app.run("parent", parent) == "gave up"


# ── a lease that is lost ─────────────────────────────────────────────────────────────────────────


async def test_an_attempt_that_loses_its_lease_stops_and_starts_no_effect(quick_url: str) -> None:
    @durable
    async def two() -> None:
        await note(1)
        await taken.wait()
        for number in range(3):
            try:
                await touch(number)
            except Exception as error:
                ran.append(type(error).__name__)

    taken = asyncio.Event()
    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("job", two))
        await wait_until(lambda: ran == [1])
        task = await app.tasks.handle("job")
        params = {**task._event("attempt taken over", {}), "seen_epoch": 1, "seen_worker": app._store.presence.worker}
        params |= {"worker": "another", "host": "there", "pid": 1, "user": "eve", "agent": "", "before": "running"}
        params["former"] = "superseded"
        await app._store.verb("claim", task.uid, params, key="job")
        taken.set()
        with pytest.raises(LeaseLost):
            await work
        assert ran == [1, "LeaseLost", "LeaseLost", "LeaseLost"] and world.done == []
        entries = await read_entries(app._store, task.uid, 1)
        assert [entry.op for _, entry in entries] == ["step"]


# ── plain functions ──────────────────────────────────────────────────────────────────────────────


async def test_a_plain_step_marks_its_progress_and_goes_on_there(quick_url: str, monkeypatch: Any) -> None:
    @step
    def copies(total: int) -> int:
        for number in range(plain_progress.cursor or 0, total):
            ran.append(number)
            plain_progress.mark(cursor=number + 1, done=number + 1, total=total, flush=number % 2 == 0)
        return total

    @durable
    def plain(total: int) -> int:
        return copies(total)

    async with Perdure(quick_url) as app:
        with pytest.MonkeyPatch.context() as patch:
            places = Places(patch)
            places.at("progress.marked", lambda: places.at("progress.marked", raising(Died())))
            with pytest.raises(Died):
                await app.run("job", plain, 6)
        assert ran in ([0, 1, 2], [0, 1])  # on a slow machine the mark of the second item is stored as well
        assert await app.run("job", plain, 6) == 6
        assert ran == [0, 1, 2, 3, 4, 5]


# ── pauses that cannot be ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "ask",
    [
        lambda: pause.approval(""),
        lambda: pause.input("  ", str),
        lambda: pause.input("how many?", int, default="three"),  # type: ignore[type-var, arg-type]
        lambda: pause.poll(_nothing, every=timedelta(milliseconds=10)),
        lambda: pause.wait(days=10**8),
        lambda: pause.until("tomorrow"),  # type: ignore[arg-type]
        lambda: pause.rate_limit(retry_after=float("nan")),
        lambda: signals.next("", str),
    ],
    ids=["no question", "blank", "default", "too often", "too long", "no moment", "no number", "no name"],
)
async def test_a_pause_that_no_task_can_have_is_refused_where_it_is_asked_for(quick_url: str, ask: Any) -> None:
    @durable
    async def asks() -> str:
        try:
            await ask()
        except InvalidInput as error:
            return error.what
        return "it went on"

    async with Perdure(quick_url) as app:
        assert await app.run("job", asks) != "it went on"


async def _nothing() -> None:
    return None


async def test_a_signal_and_a_question_may_have_any_characters(quick_url: str) -> None:
    @durable
    async def waits() -> list[str]:
        return [await signals.next("a|b#1/c", str), await pause.input("x|y#2?", str), await note("z")]

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", waits)
        task = await app.tasks.handle("job")
        await task.signal("a|b#1/c", "one")
        await until_paused(app, "job", waits)
        await task.answer("two", by="ada")
        assert await app.run("job", waits) == ["one", "two", "z"] and ran == ["z"]
