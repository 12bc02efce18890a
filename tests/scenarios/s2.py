"""S2, never charge twice: kill a task of five effects at every point, carry it on in a fresh process, and count.

One case is one effect, one fault point and one sort of target. `run` does it and raises AssertionError with what
was found; tests/scenarios/test_s2.py does each once, `make torture` each fifty times.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from perdure._durable.effects.effect_walk import Walk
from perdure._ground import crash_points as crash
from perdure._ground.encoding import codec
from perdure._model import Pause
from perdure._store import Write
from perdure._store.exit_flush import _flush_all as flush_all
from tests.durable.effects_kit import until_paused
from tests.scenarios.kit import shop as shops
from tests.scenarios.kit.effects_server import Target, effects_server
from tests.scenarios.kit.shop import NAMES, Shop
from tests.support.folders import fast_folder
from tests.support.processes import Link, Nursery, die, nursery
from tests.torture.kills import Home

POINTS = ("before intent", "after intent", "before reply", "before log", "during log", "after log")
MODES = ("a", "b", "c")
# Where nobody can know whether it happened, unless its target helps.
AMBIGUOUS = frozenset({"after intent", "before reply", "before log", "during log"})
ORDER = "o-1"
WHAT = {
    "charge": "o-1 500",
    "mail": "thanks for o-1",
    "ticket": "ship o-1",
    "append": "sold o-1",
    "insert": "row o-1",
}
SENT_OVER_HTTP = NAMES[:3]


class Case(NamedTuple):
    name: str
    point: str
    mode: str

    @property
    def number(self) -> int:
        """The how-manieth effect of the task it is."""
        return NAMES.index(self.name) + 1

    @property
    def is_done(self) -> bool:
        """True if the effect had happened when the process was killed."""
        return self.point not in ("before intent", "after intent")

    @property
    def pauses(self) -> bool:
        return self.mode == "c" and self.point in AMBIGUOUS


def all_cases() -> list[Case]:
    return [Case(name, point, mode) for mode in MODES for name in NAMES for point in POINTS]


# ── in the child ─────────────────────────────────────────────────────────────────────────────────


async def carry_on(_: Link, home: Home, shop: Shop, case: Case | None, has_ledger: bool = True) -> tuple[str, Any]:
    """Carry the task on until it ends or waits; with a case, until this process is killed."""
    with mock.patch.object(Walk, "_intend", _no_intent) if not has_ledger else contextlib.nullcontext():
        if case is not None:
            _arm(case, home)
        async with home.open() as app:
            found = await until_paused(app, "order", shops.make(shop), ORDER)
            return ("paused", found.message) if isinstance(found, Pause) else ("ended", found)


def _no_intent(self: Walk, _now: int) -> Write:
    """The control: an effect without its ledger, as a step is."""
    return Write(self.attempt.store.committer, "append_entry", {}, "", done=True)


def _arm(case: Case, home: Home) -> None:
    engine = "postgres" if home.url.startswith("postgres") else "sqlite"
    if case.point == "before intent":
        # The outcome before it is on its way to disk; else that would be the point where it is killed.
        _at("effect.before_intent", case.number, _flush_and_die)
    elif case.point == "after intent":
        crash.arm("effect.intended", case.number)
    elif case.point == "before log":
        crash.arm("effect.done", case.number)
    elif case.point == "during log":
        # The next commit after the body's end is the one that takes its outcome to disk.
        _at("effect.done", case.number, lambda: crash.arm(f"{engine}.before_commit"))
    elif case.point == "after log":
        # Before the next intent, which would else ride in the same commit.
        _at("effect.recorded", case.number, _flush_and_die)


def _at(name: str, count: int, act: Callable[[], None]) -> None:
    place, left = crash.place, [count]

    def passed(found: str) -> None:
        if found == name:
            left[0] -= 1
            if left[0] == 0:
                act()
        place(found)

    crash.place = passed  # type: ignore[assignment]
    crash.armed = crash.armed or "somewhere else"  # else some places are not asked for at all


def _flush_and_die() -> None:
    flush_all()
    die()


async def answer(_: Link, home: Home, choice: Any, value: Any) -> None:
    async with home.open() as app:
        await app.effects.settle("order", choice, value=value, by="ada")


async def look(_: Link, home: Home) -> tuple[Any, list[tuple[Any, ...]]]:
    """What the store holds in the end: the result's bytes, and each effect as the ledger has it."""
    async with home.open() as app:
        record = await app.tasks.get("order")
        assert record is not None
        effects = [(one.call, one.state, one.key) for one in await app.effects.of("order")]
        return codec.encode([record.status, record.result]), effects


# ── around it ────────────────────────────────────────────────────────────────────────────────────


def run(
    case: Case,
    home: Home,
    folder: Path,
    children: Nursery,
    *,
    choice: str | None = None,
    has_ledger: bool = True,
) -> None:
    """Kill the task at the case's point, carry it on, and check that every effect happened once.

    `choice` is what a person answers; without it, the truth.
    """
    with effects_server(honours_keys=case.mode == "a", can_be_asked=case.mode == "b") as target:
        dies_in = case.name if case.point == "before reply" and case.name not in SENT_OVER_HTTP else ""
        if case.point == "before reply" and not dies_in:
            target.faults[case.name] = ["kill"]
        shop = Shop(case.mode, target.address, folder, dies_in)
        child = children.start(carry_on, home, shop, case, has_ledger)
        assert child.wait() == -9, f"{case}: the process was not killed; it said {child.rest()}"

        shop = shop._replace(dies_in="")
        how, found = children.run(carry_on, home, shop, None, has_ledger)
        assert how == ("paused" if case.pauses and has_ledger else "ended"), f"{case}: it {how} with {found}"
        if how == "paused":
            assert found == f"outcome unknown: {case.name}({WHAT[case.name]!r})", f"{case}: {found}"
            assert _count(target, shop, case.name) == int(case.is_done), f"{case}: run again, and nobody asked"
            chosen = choice or ("done" if case.is_done else "retry")
            receipt = _receipt(case.name)
            children.run(answer, home, chosen, receipt if chosen == "done" else None)
            how, found = children.run(carry_on, home, shop, None, has_ledger)
            assert how == "ended", f"{case}: it {how} with {found}"
        check(case, home, target, shop, children, choice)


def _receipt(name: str) -> str:
    return f"{name} of {WHAT[name]}" if name in SENT_OVER_HTTP else WHAT[name]


def _count(target: Target, shop: Shop, name: str) -> int:
    local = {"append": shops.lines, "insert": shops.rows}
    return len(local[name](shop)) if name in local else target.count(name)


def check(case: Case, home: Home, target: Target, shop: Shop, children: Nursery, choice: str | None) -> None:
    """Exactly one effect per operation, one key each, and a final state equal to an uninterrupted run's."""
    counts = {name: _count(target, shop, name) for name in NAMES}
    expected = dict.fromkeys(NAMES, 1)
    if choice is not None:  # a person may be wrong, and then it is done as they said
        expected[case.name] = int(case.is_done) + (choice == "retry")
    assert counts == expected, f"{case}: {counts}"

    stored, effects = children.run(look, home)
    keys = dict(zip(NAMES, (key for _, _, key in effects), strict=True))
    assert len(set(keys.values())) == len(NAMES), f"{case}: {keys}"
    for name in SENT_OVER_HTTP:
        assert target.keys_of(name) <= {keys[name]}, f"{case}: {name} was sent under {target.keys_of(name)}"
    assert set(shops.line_keys(shop)) <= {keys["append"]}
    assert set(shops.row_keys(shop)) <= {keys["insert"]}
    if choice is None:
        assert final_state(stored, effects, target, shop) == undisturbed(), f"{case}: another end"


def final_state(stored: bytes, effects: list[tuple[Any, ...]], target: Target, shop: Shop) -> bytes:
    """All that is left when it is over, as bytes; without keys, which are each task's own."""
    world = {"http": sorted(target.done), "lines": shops.lines(shop), "rows": shops.rows(shop)}
    ledger = [(call, state) for call, state, _ in effects]
    return json.dumps([stored.hex(), ledger, world], sort_keys=True).encode()


_undisturbed: list[bytes] = []


def undisturbed() -> bytes:
    """The final state of a run that nobody disturbed; the same for all sorts of targets."""
    if not _undisturbed:
        with fast_folder() as folder, nursery() as children, effects_server() as target:
            home, shop = Home(f"sqlite://{folder}/p.db"), Shop("c", target.address, folder)
            assert children.run(carry_on, home, shop, None)[0] == "ended"
            _undisturbed.append(final_state(*children.run(look, home), target, shop))
    return _undisturbed[0]
