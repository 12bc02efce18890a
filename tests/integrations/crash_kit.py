"""The crash kit that every adapter is put through.

An agent notes what it does to the world in a file, one line a deed, flushed before it goes on. It is killed (kill -9)
at a named point, started again, killed at the next, and so on. Afterwards the file says what happened how often.

`DEATHS` names what each adapter's agent is put through, twice in a row and on both engines. The table in the guide is
made from it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import perdure
from tests.support.processes import ChildDied, Nursery, die


class Deaths(NamedTuple):
    """The deeds of an agent, as its ledger has them, at which it is killed."""

    model: str  # a model call
    reads: str  # a tool that only reads
    pays: str  # a tool that acts; its outcome is not known then
    kept: str  # its outcome is on disk, and the framework has not written it down


DEATHS = {
    "LangGraph": Deaths("model 0", "look 2", "pay", "pay returned"),
    "LangGraph, deep agent": Deaths("model 0", "look 2", "pay", "pay returned"),
    "Pydantic AI": Deaths("model 0", "look 2", "pay", "pay returned"),
    "OpenAI Agents": Deaths("model 0", "look 2", "pay", "pay returned"),
    "Agent Framework": Deaths("model 0", "look 2", "pay", "pay returned"),
    "Strands Agents": Deaths("model 0", "look 2", "pay", "pay returned"),
    "Claude Agent SDK": Deaths("model look", "look", "pay", "pay unheard"),
}
_KILLED = {
    "in a model call": "made again",
    "in a tool that only reads": "runs again",
    "in a tool that acts": "a person is asked; runs again only if the answer is retry",
    "after a tool's outcome, before the framework wrote it down": "does not run again",
    "while a person is asked": "the same question, once",
}


def table() -> list[str]:
    """The lines of the guide's table."""
    names = list(DEATHS)
    rows = [["killed twice in a row", *names], ["---"] * (1 + len(names))]
    rows += [[where, *[then] * len(names)] for where, then in _KILLED.items()]
    return [f"| {' | '.join(row)} |" for row in rows]


class Ledger:
    """What happened outside, whatever perdure says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, deed: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{deed}\n")
            file.flush()
            os.fsync(file.fileno())

    def counts(self) -> Counter[str]:
        return Counter(self.path.read_text().split("\n")[:-1]) if self.path.exists() else Counter()


async def on_disk() -> None:
    """Whatever the durable function around has recorded is on disk afterwards."""

    async def nothing() -> None:
        return None

    await perdure.call(nothing, name="on disk", flush=True)


class Fate:
    """Where a process is to die. Points are passed often; the first passing is the one that kills."""

    def __init__(self, point: str) -> None:
        self._point = point

    def passes(self, point: str) -> None:
        if point == self._point:
            die()


class Lives:
    """One agent, in one process after another."""

    def __init__(self, nursery: Nursery, url: str, ledger: Ledger) -> None:
        self.nursery, self.url, self.ledger = nursery, url, ledger

    def live(self, agent: Callable[..., Any], *arguments: Any) -> Any:
        """One life, to its end: what the agent returns."""
        return self.nursery.run(agent, self.url, self.ledger.path, "", *arguments)

    def die_at(self, agent: Callable[..., Any], points: Sequence[str], *arguments: Any) -> None:
        """One life for each point; each must end there."""
        for point in points:
            try:
                said = self.nursery.run(agent, self.url, self.ledger.path, point, *arguments)
            except ChildDied:
                continue
            raise AssertionError(f"the agent did not come to {point!r}: {said!r}")

    def are_survived(
        self, agent: Callable[..., Any], deaths: Deaths, yes: str, homes: Sequence[Sequence[Any]] = ((), ())
    ) -> Any:
        """Kill the agent at each point twice in a row, and see that nothing which was finished happens again.

        What is cut off is a person's to decide: asked about, tried again, cut off again, and settled. Each second life
        gets the other arguments of `homes`. `yes` is the answer to what the agent asks by itself. What it says in the
        end is returned.
        """
        here, there = homes
        for point in (deaths.model, deaths.reads):
            self.die_at(agent, [point], *here)
            self.die_at(agent, [point], *there)
        counts = self.ledger.counts()
        assert counts[deaths.model] >= 2 and counts[deaths.reads] == 2 and counts[deaths.pays] == 0

        self.die_at(agent, [deaths.pays], *here)
        self.live(agent, *there)  # until it asks
        assert self.ledger.counts()[deaths.pays] == 1, "what was cut off happened again, and nobody was asked"
        self.die_at(agent, [deaths.pays], *there, ["retry"])
        self.live(agent, *here)
        assert self.ledger.counts()[deaths.pays] == 2
        self.die_at(agent, [deaths.kept], *here, ["retry"])
        self.die_at(agent, [deaths.kept], *there)

        self.die_at(agent, ["asked"], *here)
        self.die_at(agent, ["asked"], *there)
        told = self.live(agent, *here, [yes])
        counts = self.ledger.counts()
        assert counts[deaths.pays] == 3 and counts[deaths.reads] == 3
        return told
