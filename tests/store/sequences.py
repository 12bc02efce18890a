"""Random sequences of verbs, applied to several engines that must agree at every step.

`run_sequence` is driven by a seed (for `make torture`) or by a random source of hypothesis, which can make
a failing sequence shorter. Which verbs it is made of is in maker.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from perdure._store import Engine
from tests.store.kit import commit_all, dump, heads, write
from tests.store.maker import Maker


class Disagreement(AssertionError):
    """Two engines answered differently, or hold different rows."""


def run_sequence(seed: int | Random, engines: Sequence[Engine], steps: int = 40) -> list[str]:
    """Apply one random sequence to empty engines; the names of the verbs that were done (not refused).

    Raises:
        Disagreement: the message has the step, the verb and what differs.
    """
    maker = Maker(seed if isinstance(seed, Random) else Random(seed), engines[0])
    done = []
    for step in range(steps):
        key, verbs = maker.batch()
        answers = [commit_all(engine, [write(*verb, key=key) for verb in verbs]) for engine in engines]
        _compare(f"the answers to step {step}, {verbs}", engines, answers)
        _compare(f"the store after step {step}, {verbs}", engines, [dump(engine) for engine in engines])
        _compare(f"what is sealed after step {step}, {verbs}", engines, [heads(engine) for engine in engines])
        asked = maker.listing()
        _compare(f"list_tasks {asked}", engines, [_rows(engine.query("list_tasks", asked)) for engine in engines])
        done += [verb for (verb, _), row in zip(verbs, answers[0], strict=True) if row is not None]
    return done


def _rows(rows: Sequence[Any]) -> list[Any]:
    return [tuple(row) for row in rows]


def _compare(what: str, engines: Sequence[Engine], found: Sequence[Any]) -> None:
    for engine, value in zip(engines[1:], found[1:], strict=True):
        if value != found[0]:
            raise Disagreement(
                f"{what}\n{engines[0].kind}: {_only(found[0], value)}\n{engine.kind}: {_only(value, found[0])}"
            )


def _only(here: Any, there: Any) -> Any:
    """What of a dump differs from the other one."""
    if not isinstance(here, dict):
        return here
    return {name: here.get(name) for name in sorted(here.keys() | there.keys()) if here.get(name) != there.get(name)}
