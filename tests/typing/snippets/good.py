"""What users write; every line must pass a strict check, and every type be what they expect."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from perdure import Perdure, Retry, checks, durable, effect, signals, step
from perdure import checkpoint as saves
from perdure import pause as pauses
from perdure.automation import Do, Reducer, Schedule
from perdure.memory import Block, ContinuityLayer, DurableTaskState, Memory, PlanLayer
from perdure.models import Budget
from perdure.pause import Approval
from perdure.signals import instruction
from perdure.sync import Perdure as SyncPerdure
from perdure.types import Checkpoint, Config, Handle, Page, Task, TaskRecord, ToolFunction


@dataclass
class Order:
    id: str
    cents: int


@step
async def summarise(page: str, *, words: int = 100) -> list[str]:
    return page.split()[:words]


@step(retry=Retry(3, wait="1s", cap=timedelta(minutes=1)), timeout="5s", flush=True)
def count(text: str) -> int:
    return len(text)


async def find_charge(order: str, cents: int) -> object: ...


@effect(verify=find_charge, keyed=True)
async def charge(order: str, cents: int) -> dict[str, int]:
    return {order: cents}


@durable
async def checkout(order: Order, pages: list[str] | None = None) -> dict[str, int]:
    words = await summarise("a page", words=3)
    assert_type(words, list[str])
    assert_type(count("text"), int)
    receipt = await charge(order.id, order.cents)
    assert_type(receipt, dict[str, int])
    answer = await pauses.input("how many?", int)
    assert_type(answer, int)
    word = await signals.next("go", str)
    assert_type(word, str)
    return receipt


async def is_green() -> Order | None:
    return None


async def announce(token: str) -> None: ...


@durable
async def waits() -> None:
    assert_type(await pauses.approval("go?", expires=timedelta(days=2), default="approve"), Approval)
    assert_type(await pauses.input("how many?", int, default=3), int)
    assert_type(await pauses.callback("ci", Order, announce=announce), Order)
    assert_type(await pauses.callback("ci", link="https://ci.example"), Any)
    assert_type(await pauses.poll(is_green, every=timedelta(seconds=30), backoff=2, limit="1h"), Order)
    await pauses.poll(checks.url("https://ci.example", expect={"state": "green"}), every=timedelta(seconds=30))
    await pauses.wait(hours=24)
    await pauses.wait("1h30m")
    await pauses.wait(timedelta(days=1))
    await pauses.until(datetime(2030, 1, 1, tzinfo=UTC))
    await pauses.rate_limit(retry_after=2.5, provider="api", max_wait="5m")
    assert_type(await pauses.task("other-1", on_failure="return"), Any)
    await pauses.yield_now()


@durable(name="other", version=2)
async def other(n: int) -> str:
    return str(n)


@durable(name="plain other", version=2)
def plain_other(n: int) -> str:
    return str(n)


async def use(app: Perdure) -> None:
    assert_type(plain_other(3), str)
    assert_type(await app.run("plain-1", plain_other, 3), str)
    assert_type(await app.run("checkout-42", checkout, Order("a", 1)), dict[str, int])
    assert_type(await app.start("other-1", other, 3), Handle[str])
    assert_type((await app.run_until_paused("checkout-42", checkout, Order("a", 1))).result, dict[str, int])
    assert_type(await (await app.start("other-1", other.options(queue="slow"), n=3)).result(), str)
    task = await app.tasks.open("job", state={"n": 1})
    assert_type(task, Task)
    await task.approve(by="ada", comment="go", edited={"n": 2})
    await task.reject(by="ada")
    await task.answer(7, by="ada")
    assert_type(await app.tasks.deliver(await task.callback_token(), {"state": "green"}), bool)
    assert_type(await task.checkpoint({"n": 2}), Checkpoint)
    assert_type(await app.tasks.get("job"), TaskRecord | None)
    assert_type(await app.tasks.list(status="paused", reason="rate_limit"), Page[TaskRecord])
    async with task.attempt() as same:
        assert_type(same, Task)
    async for checkpoint in task.checkpoints():
        assert_type(checkpoint, Checkpoint)
    async with app.worker(concurrency=3, grace="10s"):
        pass
    later = await app.tasks.create("later", state={}, status="pending", config=Config(timeout="2h", keep_for="7d"))
    await later.pause("Which branch?")
    app.queue("mail", rate=(10, "1s"))
    limited = other.options(timeout="2h", budget=Budget(time="1h"))
    assert_type(await (await app.start("other-2", limited, 3)).result("10m"), str)
    assert_type(await app.schedule("daily", other, 3).cron("0 9 * * *"), Schedule)
    assert_type(await (await app.schedule("daily", other, 3)).every("10m"), Schedule)
    async with app.memory("job", [ContinuityLayer(), DurableTaskState(base_dir="out"), PlanLayer()]) as memory:
        assert_type(await memory.prompt_blocks(budget=100), Sequence[Block])
        assert_type(await memory.spawn("child"), Memory)
        await memory.complete("success")


def blocking() -> Any:
    with SyncPerdure() as app:
        task = app.tasks.open("job")
        with task.attempt():
            task.checkpoint({"n": 1}, label="x")
        return task.record().state


# ── steering, saving, folding ────────────────────────────────────────────────────────────────────


@durable
async def rounds(total: int) -> int:
    state = await saves.last({"page": 0})
    assert_type(state, dict[str, int])
    goal = await instruction("in English")
    assert_type(goal, str)
    await saves.save({"page": state["page"] + total}, label=goal)
    return state["page"]


def add(total: int, event: str) -> tuple[int, list[Do]]:
    return total + len(event), [Do(rounds, total)]


totals = Reducer("totals", add, 0, str, is_over=lambda total: total > 10)


async def steer(app: Perdure) -> None:
    task = await app.tasks.handle("job")
    assert_type(await task.fork("copy", at="rounds#1", set={"total": 2}), Task)
    await task.rollback("1", undo=True)
    await task.resume(instruction="in French")
    await app.kill_switch.on("job", why="enough")
    handle = await app.handle("job", rounds)
    assert_type(handle, Handle[int])
    assert_type(await handle.is_done(), bool)
    assert_type(await app.run("sum", totals.function), int)
    assert_type(await totals.state_at(app, "sum", 3), int)
    await totals.send(app, "sum", "word")


# ── methods ──────────────────────────────────────────────────────────────────────────────────────


class Agent:
    @step
    async def think(self, about: str) -> list[str]:
        return [about]

    @effect(keyed=True)
    async def tell(self, what: str, *, times: int = 1) -> int:
        return times

    @effect(keyed=True)
    def note(self, what: str) -> int:
        return 1

    @classmethod
    @effect(keyed=True)
    async def announce(cls, what: str) -> int:
        return 1

    @durable
    async def live(self, days: int) -> str:
        assert_type(await self.think("x"), list[str])
        assert_type(await self.tell("x", times=3), int)
        assert_type(await self.tell.plain("x"), int)
        assert_type(self.note("x"), int)
        await self.announce("x")
        return "x"

    @durable(name="report", version=2)
    def report(self, days: int) -> str:
        return "x"

    @classmethod
    @durable
    async def begin(cls, days: int) -> str:
        return "x"

    @staticmethod
    @durable
    async def tidy(days: int) -> str:
        return "x"


tools: dict[str, ToolFunction[Awaitable[object]]] = {
    "summarise": summarise,
    "charge": charge,
    "other": other,
    "think": Agent().think,
    "tell": Agent().tell,
}


async def use_tools(app: Perdure) -> None:
    print(await tools["charge"]("order-1", cents=5))
    print(await app.run("checkout-42", checkout, Order("a", 1)))


async def keep(app: Perdure, agent: Agent) -> None:
    assert_type(await app.run("a", agent.live, days=3), str)
    assert_type(await app.start("a", agent.live.options(queue="slow"), 3), Handle[str])
    assert_type(await app.run("a", agent.report, 3), str)
    assert_type(agent.report(3), str)
    await app.run("a", Agent.begin, 3)
    await app.run("a", Agent.tidy, 3)
