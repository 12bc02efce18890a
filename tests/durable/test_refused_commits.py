"""A store that refuses one commit in four: what was acknowledged is there, and no effect is repeated silently."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from perdure import Perdure, durable, effect, idempotency_key, step
from perdure.errors import LeaseHeld, LeaseLost, StoreFull, StoreUnavailable
from tests.durable.effects_kit import wait_until

ROUNDS = 5
_HEARTBEATS = frozenset({"beat", "register_worker"})
sent: list[tuple[str, str]] = []


@step
async def look(number: int) -> int:
    return number


@effect(keyed=True)
async def send(number: int) -> str:
    sent.append((f"keyed {number}", idempotency_key()))
    return f"sent {number}"


@effect
async def send_once(number: int) -> str:
    sent.append((f"once {number}", idempotency_key()))
    return f"sent {number}"


@durable(name="rounds with refused commits")
async def rounds() -> list[Any]:
    found: list[Any] = []
    for number in range(ROUNDS):
        found.append(await look(number))
        found += await asyncio.gather(look(10 + number), send(number), look(20 + number))
        found.append(await send_once(number))
    return found


def refuse_some(app: Perdure, dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = app._store.engine
    commit = engine.commit

    def perhaps(writes: Any) -> Any:
        if not any(write.verb in _HEARTBEATS for write in writes) and dice.random() < 0.25:
            raise StoreFull("no space left")
        return commit(writes)

    monkeypatch.setattr(engine, "commit", perhaps)


async def carry_out(app: Perdure) -> list[Any]:
    while True:
        try:
            return await app.run("function", rounds)
        except (StoreUnavailable, LeaseHeld, LeaseLost):
            await asyncio.sleep(0)


async def answer_what_is_uncertain(app: Perdure, work: asyncio.Future[Any]) -> None:
    """As a person would who looks at the target: what was sent once is done."""

    async def settled() -> bool:
        for one in await app.effects.list():
            number = int(one.call.removeprefix("send_once(").removesuffix(")"))
            is_done = any(what == f"once {number}" for what, _ in sent)
            try:
                await app.effects.settle(
                    one.task_id,
                    "done" if is_done else "retry",
                    value=f"sent {number}" if is_done else None,
                    key=one.key,
                )
            except StoreUnavailable:
                continue
        return work.done()

    await wait_until(settled)


async def checkpoint_some(app: Perdure, dice: random.Random) -> dict[int, Any]:
    """What was acknowledged: each state, by the number of its checkpoint."""
    acknowledged: dict[int, Any] = {}
    for number in range(10):
        state = {"n": number, "picture": dice.randbytes(dice.choice([10, 5_000, 1_500_000]))}
        try:
            task = await app.tasks.open("plain", state={"n": -1})
            acknowledged[(await task.checkpoint(state)).seq] = state
        except StoreUnavailable:
            continue
    return acknowledged


@pytest.mark.req("R11", "R64", "R23")
@pytest.mark.parametrize("seed", range(3))
async def test_nothing_acknowledged_is_lost_and_nothing_is_sent_twice(
    url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent.clear()
    dice = random.Random(seed)
    async with Perdure(url) as app:
        with monkeypatch.context() as patch:
            refuse_some(app, dice, patch)
            work = asyncio.ensure_future(carry_out(app))
            acknowledged, found, _ = await asyncio.gather(
                checkpoint_some(app, dice), work, answer_what_is_uncertain(app, work)
            )
        assert found == [one for n in range(ROUNDS) for one in (n, 10 + n, f"sent {n}", 20 + n, f"sent {n}")]
        times = Counter(what for what, _ in sent)
        assert all(times[f"once {number}"] == 1 for number in range(ROUNDS)), "sent again, and nobody said so"
        assert len(set(sent)) == 2 * ROUNDS, "a keyed one is sent again only under its key"
        task = await app.tasks.handle("plain")
        assert {one.seq: one.data async for one in task.checkpoints()} == acknowledged
