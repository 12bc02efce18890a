"""Bundles with something changed in them, and a seal that fits: refused in our own words, or taken in and harmless.

Each seed changes bundles of tests/security/corpus, honest ones and attacks: bytes of the file, fields of
the header, columns and rows, what is inside a record, the pack. Whatever comes in, the tasks that were there before are
listed as before, nobody is contacted, and the one that came in can be looked at in every way.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from perdure import Perdure
from perdure._durable import where
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.bundles.task_bundle import bring_in
from perdure._runtime.context import context as contexts
from perdure._runtime.restore.continuity import Continuity
from perdure.errors import BundleRefused, KeyMissing, NotFound, PerdureError, RecordDamaged
from tests.security import hostile
from tests.support.folders import fast_folder

CORPUS = Path(__file__).parents[1] / "security" / "corpus" / "bundles"
PER_SEED = 12
ODD: list[Any] = [
    None, 0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 1.5, True, "", "\0", "\x1b[2J", "--output=/dev/full", "../../x",
    "/etc/passwd", "a" * 5000, "\\x", "\\x0", "\\xzz", "\\x00" * 3, "[]", "{}", "null", [], {}, [[]], b"", b"\0" * 40,
    "running", "paused", "completed", "0" * 24, "0" * 64,
]  # fmt: skip


def run(seed: int) -> None:
    random_ = random.Random(seed)
    with fast_folder() as folder, _nobody_is_contacted(), _quiet():
        asyncio.run(_attack(random_, folder, seed))


async def _attack(random_: random.Random, folder: Path, seed: int) -> None:
    bases = _bases()
    async with Perdure(f"sqlite://{folder}/p.db") as app:
        await app.tasks.open("mine", state={"precious": True})
        for number in range(PER_SEED):
            bundle = folder / "task.perdure"
            bundle.write_bytes(random_.choice(bases))
            try:
                _change(random_, bundle)
                await _import(app, bundle)
            except BaseException as error:
                error.add_note(f"seed {seed}, bundle {number}")
                raise
        contexts.forget_contexts()


async def _import(app: Perdure, bundle: Path) -> None:
    try:
        came = await bring_in(app.tasks, bundle)
    except (BundleRefused, KeyMissing):
        came = None
    listed = {task.id: task for task in (await app.tasks.list()).items}
    assert listed["mine"].state == {"precious": True}
    assert set(listed) == {"mine", *([came.task_id] if came else [])}, "something came in with it"
    if came is not None:
        await _look_at(app, came.task_id)


async def _look_at(app: Perdure, id: str) -> None:
    """Every way to look at a task tells what is wrong with it, or works."""
    for look in (_get, _events, _checkpoints, _where, _plan):
        try:
            await look(app, id)
        except PerdureError:
            continue
    await (await app.tasks.handle(id)).delete(force=True)


async def _get(app: Perdure, id: str) -> None:
    await app.tasks.get(id)


async def _events(app: Perdure, id: str) -> None:
    await app.tasks.events(id)


async def _checkpoints(app: Perdure, id: str) -> None:
    async for _ in (await app.tasks.handle(id)).checkpoints():
        pass


async def _where(app: Perdure, id: str) -> None:
    await where(app.tasks, id)


async def _plan(app: Perdure, id: str) -> None:
    task = await app.tasks.handle(id)
    try:
        await Continuity(app._store, task.id, task.uid).plan()
    except NotFound:
        return


@contextmanager
def _quiet() -> Iterator[None]:
    """Damaged records are named aloud, and here there are many."""
    log = logging.getLogger("perdure")
    kept = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(kept)


@contextmanager
def _nobody_is_contacted() -> Iterator[None]:
    kept = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX, f"{address} was contacted"
        kept(self, address)

    socket.socket.connect = connect  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        socket.socket.connect = kept  # type: ignore[method-assign]


@cache
def _bases() -> list[bytes]:
    """The same for every run, so that a seed repeats what it did; most are changed from the honest ones."""
    files = sorted(CORPUS.glob("*.perdure"))
    return [file.read_bytes() for file in files for _ in range(4 if file.stem.startswith("honest") else 1)]


# ── changing ─────────────────────────────────────────────────────────────────────────────────────


def _change(random_: random.Random, bundle: Path) -> None:
    ways: list[Callable[[random.Random, Path], None]] = [_bytes, _header, _columns, _columns, _rows, _inside, _pack]
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        way = random_.choice(ways)
        try:
            way(random_, bundle)
        except (BundleRefused, KeyMissing, RecordDamaged, KeyError, IndexError, TypeError, ValueError, OverflowError):
            return  # it was changed beyond what can be read: that is one, too


def _bytes(random_: random.Random, bundle: Path) -> None:
    bundle.write_bytes(scrambled(random_, bundle.read_bytes()))


def scrambled(random_: random.Random, data: bytes) -> bytes:
    """Bits flipped, a stretch cut out, doubled, or written over."""
    changed = bytearray(data or b"\0")
    at = random_.randrange(len(changed))
    length = random_.choice((1, 4, 32, 512))
    match random_.randrange(4):
        case 0:
            for _ in range(random_.randint(1, 8)):
                changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
        case 1:
            del changed[at : at + length]
        case 2:
            changed[at:at] = changed[at : at + length]
        case _:
            changed[at : at + length] = random_.randbytes(min(length, len(changed) - at))
    return bytes(changed)


def _header(random_: random.Random, bundle: Path) -> None:
    def change(rows: hostile.Rows, header: dict[str, Any]) -> None:
        name = random_.choice(sorted(header))
        if name == "cuts" and random_.random() < 0.7:
            cut, commit = next(iter(header["cuts"].items()), ("0" * 24, "0" * 64))
            header["cuts"] = {random_.choice([cut, str(random_.choice(ODD))]): random_.choice([commit, *map(str, ODD)])}
        else:
            header[name] = random_.choice(ODD)

    hostile.forge(bundle, change)


def _columns(random_: random.Random, bundle: Path) -> None:
    def change(rows: hostile.Rows, header: dict[str, Any]) -> None:
        table = random_.choice([name for name in sorted(rows) if rows[name]])
        row = random_.choice(rows[table])
        name = random_.choice(sorted(row))
        match random_.randrange(4):
            case 0:
                del row[name]
            case 1:
                row[random_.choice(("uid", "owner", "surplus", name.upper()))] = random_.choice(ODD)
            case _:
                row[name] = random_.choice(ODD)

    hostile.forge(bundle, change)


def _rows(random_: random.Random, bundle: Path) -> None:
    def change(rows: hostile.Rows, header: dict[str, Any]) -> Any:
        tables = [name for name in sorted(rows) if rows[name]]
        table, other = random_.choice(tables), random_.choice(sorted(rows))
        match random_.randrange(5):
            case 0:
                rows[table].append(copy.deepcopy(random_.choice(rows[table])))
            case 1:
                rows[other] = rows[other] + rows[table]
            case 2:
                rows[table] = []
            case 3:
                random_.shuffle(rows[table])
            case _:
                return scrambled(random_, msgspec.msgpack.encode(rows))
        return None

    hostile.forge(bundle, change)


def _inside(random_: random.Random, bundle: Path) -> None:
    """A record whose envelope fits, and whose contents do not."""

    def change(rows: hostile.Rows, header: dict[str, Any]) -> None:
        sealed = [
            (row, name)
            for table in rows.values()
            for row in table
            for name, value in row.items()
            if isinstance(value, str) and len(value) > 12 and value.startswith("\\x01")
        ]
        row, name = random_.choice(sealed)
        data = bytes.fromhex(row[name][2:])
        kind = envelope.kind_of(data)
        plain = envelope.unseal(data, kind=kind, bound_to=header["uid"], ring=KeyRing())
        kind = random_.choice([kind, kind, kind, "state", "delta", "event"])
        row[name] = "\\x" + envelope.seal(scrambled(random_, plain), kind, header["uid"], KeyRing()).hex()

    hostile.forge(bundle, change)


def _pack(random_: random.Random, bundle: Path) -> None:
    packs = [b"", b"PACK", hostile.growing_pack(random_.choice((1 << 16, 1 << 26, 1 << 33))), random_.randbytes(200)]
    hostile.forge(bundle, pack=random_.choice(packs))
