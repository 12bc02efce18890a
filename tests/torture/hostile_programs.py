"""Random durable programs, the ledger in which they leave their traces, and the judge of their results.

A program is a nested list: steps, effects of every kind, spans, state, checkpoints, sleeps, time-outs, races, branches,
children, signals, questions. Some of its values are decided by chance or by time. Each effect therefore takes along a
`witness`: a digest of everything its block had seen before it. The judge computes the same digest from the task's
result. If the two differ, the world was told something that the task does not remember.

The ledger is a file outside the store. Each line is one write(2) with O_APPEND, and is synced.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from perdure import (
    Perdure,
    Retry,
    budgets,
    checkpoint,
    durable,
    effect,
    idempotency_key,
    pause,
    recorded,
    signals,
    span,
    state,
    step,
)
from perdure._ground import crash_points as crash
from perdure.effects import DID_NOT_HAPPEN, DidNotHappen, Happened
from perdure.errors import EffectUncertain
from perdure.types import Config

Block = list[Any]
# A kill is bad luck, not the task's fault.
PATIENT = Config(max_retries=10_000)
# Places to be killed at, beside those of perdure itself.
SENT, APPENDED = "program.sent", "program.appended"
BEAT_SECONDS = 0.002  # between two beats of a task of the code's own
LATE, UNCERTAIN = "late", "uncertain"
app_here: list[Perdure] = []  # of this process, for programs that start children


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────


# Ledgers that are no files, by name: of processes that are simulated. Each takes the words of a note.
in_memory: dict[str, Callable[[list[str]], None]] = {}
kept_in_memory: dict[str, list[list[str]]] = {}


def note(ledger: str, *words: str) -> None:
    if ledger in in_memory:
        in_memory[ledger](list(words))
        return
    fd = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, ("\t".join(words) + "\n").encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def notes(ledger: str) -> list[list[str]]:
    if ledger in kept_in_memory:
        return kept_in_memory[ledger]
    path = Path(ledger)
    return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []


def was_sent(ledger: str, key: str) -> bool:
    return any(words[0] == "sent" and words[2] == key for words in notes(ledger))


def witness(said: list[Any]) -> str:
    return f"{crc32(json.dumps(said).encode()):08x}"


def told_to(tag: str) -> int:
    """The value that a signal or an answer with this name carries."""
    return crc32(tag.encode()) % 10_000


# ── steps and effects ────────────────────────────────────────────────────────────────────────────


@step
async def think(tag: str) -> str:
    await asyncio.sleep(0.003)
    return f"{tag}!"


@step
def ponder(tag: str) -> str:
    return f"{tag}?"


@step(flush=True)
async def keep(ledger: str, tag: str) -> str:
    note(ledger, "began", tag)
    await asyncio.sleep(0.001)
    return f"{tag} kept"


@step(retry=Retry(1_000, wait=timedelta(milliseconds=1), cap=timedelta(milliseconds=5)))
async def stumble(ledger: str, tag: str) -> str:
    note(ledger, "stumbled", tag)
    if sum(words == ["stumbled", tag] for words in notes(ledger)) < 3:
        raise ValueError(tag)
    return f"{tag} at last"


@step
async def hang(tag: str) -> str:
    await asyncio.Event().wait()
    return tag


def _send(ledger: str, tag: str, seen: str) -> str:
    note(ledger, "sent", tag, idempotency_key(), seen)
    crash.place(SENT)
    return f"{tag} sent"


def _look(ledger: str, tag: str, seen: str) -> Any:
    return Happened(f"{tag} sent") if was_sent(ledger, idempotency_key()) else DID_NOT_HAPPEN


@effect(verify=_look)
async def send_verified(ledger: str, tag: str, seen: str) -> str:
    await asyncio.sleep(0.001)
    _send(ledger, tag, seen)
    await asyncio.sleep(0.001)
    return f"{tag} sent"


@effect(keyed=True)
async def send_keyed(ledger: str, tag: str, seen: str) -> str:
    await asyncio.sleep(0.001)
    return _send(ledger, tag, seen)


@effect
async def send_asking(ledger: str, tag: str, seen: str) -> str:
    _send(ledger, tag, seen)
    await asyncio.sleep(0.001)
    return f"{tag} sent"


@effect(on_uncertain="fail")
async def send_failing(ledger: str, tag: str, seen: str) -> str:
    _send(ledger, tag, seen)
    await asyncio.sleep(0.001)
    return f"{tag} sent"


@effect(verify=_look)
def send_plainly(ledger: str, tag: str, seen: str) -> str:
    return _send(ledger, tag, seen)


@effect(verify=_look, retry=Retry(1_000, wait=timedelta(milliseconds=1), cap=timedelta(milliseconds=5)))
async def send_again(ledger: str, tag: str, seen: str) -> str:
    note(ledger, "refused", tag)
    if sum(words == ["refused", tag] for words in notes(ledger)) < 3:
        raise DidNotHappen(tag)
    return _send(ledger, tag, seen)


EFFECTS: dict[str, Any] = {
    "verified": send_verified,
    "keyed": send_keyed,
    "asking": send_asking,
    "failing": send_failing,
    "again": send_again,
}


# ── carrying a program out ───────────────────────────────────────────────────────────────────────


@durable(name="hostile program")
async def play(ledger: str, block: Block, saves: bool) -> list[Any]:
    player = Player(ledger)
    if not saves:
        return await player.block(block)
    said: list[Any] = (await checkpoint.last({"said": []}))["said"]
    while len(said) < len(block):
        said.append(await player.act(block[len(said)], said))
        await checkpoint.save({"said": said})
    return said


class Player:
    """One program in one attempt. Each method is an op: it takes its tag and what the block has seen so far."""

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger

    async def block(self, block: Block) -> list[Any]:
        said: list[Any] = []
        for op in block:
            said.append(await self.act(op, said))
        return said

    async def act(self, op: Block, said: list[Any]) -> Any:
        name, tag, *rest = op
        return await getattr(self, name)(tag, said, *rest)

    async def think(self, tag: str, said: list[Any]) -> str:
        return await think(tag)

    async def ponder(self, tag: str, said: list[Any]) -> str:
        return ponder(tag)

    async def keep(self, tag: str, said: list[Any]) -> str:
        found = await keep(self.ledger, tag)
        note(self.ledger, "had", tag)
        return found

    async def stumble(self, tag: str, said: list[Any]) -> str:
        return await stumble(self.ledger, tag)

    async def send(self, tag: str, said: list[Any], kind: str) -> str:
        if kind == "plainly":
            return send_plainly(self.ledger, tag, witness(said))
        try:
            found: str = await EFFECTS[kind](self.ledger, tag, witness(said))
        except EffectUncertain:
            found = UNCERTAIN
        return found

    async def append(self, tag: str, said: list[Any]) -> str:
        await state.append("log", tag)
        crash.place(APPENDED)
        note(self.ledger, "appended", tag)
        return "appended"

    async def spend(self, tag: str, said: list[Any], tokens: int) -> int:
        budgets.spend(tokens=tokens)
        return tokens

    async def chance(self, tag: str, said: list[Any]) -> float:
        return recorded.random()

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────

    async def sleep(self, tag: str, said: list[Any], seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    async def nap(self, tag: str, said: list[Any], seconds: float) -> str:
        await pause.wait(seconds=seconds)
        return "rested"

    async def signal(self, tag: str, said: list[Any]) -> int:
        return await signals.next(tag, int)

    async def ask(self, tag: str, said: list[Any]) -> int:
        return await pause.input(tag, int)

    async def late(self, tag: str, said: list[Any]) -> str:
        try:
            async with asyncio.timeout(0.004):
                return await hang(tag)
        except TimeoutError:
            return LATE

    async def limited(self, tag: str, said: list[Any], block: Block) -> Any:
        try:
            async with asyncio.timeout(300):
                return await self.block(block)
        except TimeoutError:
            return LATE

    async def race(self, tag: str, said: list[Any], seconds: float) -> str:
        work = asyncio.create_task(think(tag))
        timer = asyncio.create_task(asyncio.sleep(seconds))
        done, left = await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return "work" if work in done else "timer"

    async def beats(self, tag: str, said: list[Any], block: Block) -> list[Any]:
        count = 0

        async def beat() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                count += 1

        beating = asyncio.create_task(beat())
        found = await self.block(block)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
        return [found, count]

    # ── several at once ─────────────────────────────────────────────────────────────────────────

    async def span(self, tag: str, said: list[Any], block: Block) -> list[Any]:
        async with span(tag):
            return await self.block(block)

    async def gather(self, tag: str, said: list[Any], blocks: list[Block]) -> list[Any]:
        return list(await asyncio.gather(*(self.block(block) for block in blocks)))

    async def group(self, tag: str, said: list[Any], blocks: list[Block]) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.block(block)) for block in blocks]
        return [task.result() for task in tasks]

    async def queue(self, tag: str, said: list[Any], blocks: list[Block]) -> list[Any]:
        queue: asyncio.Queue[Any] = asyncio.Queue()

        async def produce(number: int, block: Block) -> None:
            queue.put_nowait([number, await self.block(block)])

        tasks = [asyncio.create_task(produce(*numbered)) for numbered in enumerate(blocks)]
        found = [await asyncio.wait_for(queue.get(), 3_000_000) for _ in blocks]
        await asyncio.gather(*tasks)
        return found

    async def child(self, tag: str, said: list[Any], block: Block) -> list[Any]:
        handle = await app_here[0].start(tag, play.options(config=PATIENT), self.ledger, block, False)
        return await handle.result()


# ── making programs ──────────────────────────────────────────────────────────────────────────────

_LEAVES = ("think", "think", "ponder", "keep", "stumble", "send", "send", "send", "send", "chance", "spend", "append")
_WAITS = ("sleep", "nap", "signal", "ask", "late", "race")
_NESTS = ("span", "limited", "beats", "child", "gather", "group", "queue")


class Maker:
    """Makes programs from a seed. Tags are unique, and tell the program's name."""

    def __init__(self, rng: random.Random, longest_nap: float, lengths: tuple[int, int] = (4, 8)) -> None:
        self._rng, self._longest, self._lengths = rng, longest_nap, lengths
        self._name, self._count, self._saves = "", 0, False

    def make(self, name: str, saves: bool) -> Block:
        self._name, self._count, self._saves = name, 0, saves
        return self._block(0, self._rng.randint(*self._lengths))

    def _block(self, depth: int, length: int) -> Block:
        return [self._op(depth) for _ in range(length)]

    def _op(self, depth: int) -> Block:
        rng, self._count = self._rng, self._count + 1
        tag, kind = f"{self._name}.{self._count}", rng.random()
        if depth < 2 and kind < 0.3:
            return self._nest(depth, tag)
        if kind < 0.55:
            name = rng.choice(_WAITS)
            length = {
                "sleep": rng.uniform(0, 0.03),
                "race": rng.uniform(0, 0.008),
                "nap": rng.uniform(0, self._longest),
            }
            return [name, tag, *([length[name]] if name in length else [])]
        # A save takes the whole state, so a program that saves does not append to it as well.
        name = rng.choice(_LEAVES[:-1] if self._saves else _LEAVES)
        if name == "send":
            return [name, tag, rng.choice([*EFFECTS, "plainly"])]
        return [name, tag, rng.randint(1, 99)] if name == "spend" else [name, tag]

    def _nest(self, depth: int, tag: str) -> Block:
        rng, name = self._rng, self._rng.choice(_NESTS)
        if name in ("gather", "group", "queue"):
            return [name, tag, [self._block(depth + 1, rng.randint(1, 3)) for _ in range(rng.randint(2, 3))]]
        return [name, tag, self._block(depth + 1, rng.randint(1, 4))]


# ── judging results ──────────────────────────────────────────────────────────────────────────────


@dataclass
class Account:
    """What a result says that its task has done, and what it may have done in blocks that were cut off."""

    sent: dict[str, str] = field(default_factory=dict)  # witnesses by tag
    spans: set[str] = field(default_factory=set)
    appended: set[str] = field(default_factory=set)
    tokens: int = 0
    children: dict[str, tuple[Block, Any]] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)  # tags
    maybe_tokens: int = 0


def judge(block: Block, said: Any) -> Account:
    """Check that a result is one that the program can have, and tell what it implies."""
    account = Account()
    _judge_block(block, said, account)
    return account


def _judge_block(block: Block, said: Any, account: Account) -> None:
    assert isinstance(said, list) and len(said) == len(block), f"{len(block)} ops said {said}"
    for number, (op, value) in enumerate(zip(block, said, strict=True)):
        assert _fits(op, value, said[:number], account), f"{op[:2]} gave {value!r}"


def _fits(op: Block, value: Any, before: list[Any], account: Account) -> bool:
    name, tag, *rest = op
    match name:
        case "send":
            if value == UNCERTAIN:
                account.maybe.add(tag)
                return bool(rest[0] == "failing")
            account.sent[tag] = witness(before)
            return bool(value == f"{tag} sent")
        case "append":
            account.appended.add(tag)
        case "spend":
            account.tokens += rest[0]
            return bool(value == rest[0])
        case "chance":
            return isinstance(value, float)
        case "signal" | "ask":
            return bool(value == told_to(tag))
        case "race":
            return value in ("work", "timer")
        case "limited":
            if value == LATE:
                _perhaps(rest[0], account)
            else:
                _judge_block(rest[0], value, account)
            return True
        case "beats":
            _judge_block(rest[0], value[0], account)
            return isinstance(value[1], int)
        case "span":
            account.spans.add(tag)
            _judge_block(rest[0], value, account)
            return True
        case "child":
            account.children[tag] = (rest[0], value)
            return True
        case "gather" | "group":
            for block, part in zip(rest[0], value, strict=True):
                _judge_block(block, part, account)
            return True
        case "queue":
            for numbered, part in value:
                _judge_block(rest[0][numbered], part, account)
            return sorted(numbered for numbered, _ in value) == list(range(len(rest[0])))
    return bool(value == _PLAIN[name].format(tag=tag))


_PLAIN = {
    "think": "{tag}!",
    "ponder": "{tag}?",
    "keep": "{tag} kept",
    "stumble": "{tag} at last",
    "append": "appended",
    "sleep": "slept",
    "nap": "rested",
    "late": LATE,
}


def _perhaps(block: Block, account: Account) -> None:
    for op in ops_of(block):
        account.maybe.add(op[1])
        account.maybe_tokens += op[2] if op[0] == "spend" else 0


def ops_of(block: Block) -> list[Block]:
    """Every op of a program, those of its children too."""
    found: list[Block] = []
    for op in block:
        found.append(op)
        if op[0] in ("gather", "group", "queue"):
            found += [inner for part in op[2] for inner in ops_of(part)]
        elif op[0] in _NESTS:
            found += ops_of(op[2])
    return found
