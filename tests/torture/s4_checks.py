"""What must hold after the storm of S4: in the world, in the record, in the prompts, and against the chaos log."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._worker.losses.reaper import DIED, SILENT, STALLED
from perdure.automation import Event
from perdure.memory import DurableTaskState, PlanLayer
from perdure.streams import account_of
from perdure.types import Attempt
from tests.torture import s4_team as team
from tests.torture.s4_look import engine, git, record

LEASE = 5.0


@dataclass(frozen=True)
class Size:
    files: int
    agents: int
    kills: int  # at most
    lasting: float  # seconds, the storm
    every: float  # seconds between two kills
    seconds: float  # a model takes
    stalled_after: str
    attempts: int
    workers: int = 2  # of each supervisor
    is_timed: bool = False  # whether it counts how soon a loss was noticed


@dataclass
class Chaos:
    """What was done to whom, and when."""

    killed: dict[int, float] = field(default_factory=dict)
    coordinators: list[int] = field(
        default_factory=list
    )  # those of them that worked on the coordinator, and were meant to
    supervisors: list[int] = field(default_factory=list)
    orphans: set[int] = field(default_factory=set)  # workers of a supervisor that was killed
    stopped: dict[int, float] = field(default_factory=dict)  # some of them past their lease
    late: list[dict[str, Any]] = field(default_factory=list)  # calls of the model whose answer came too late


def check(size: Size, app: Perdure, work: team.Work, chaos: Chaos) -> None:
    """All of it.

    Raises:
        AssertionError: something does not hold.
    """
    good = [number for number in range(size.files) if number != work["poison"]]
    names = [team.file_name(number) for number in good]
    _check_chaos(chaos)
    _check_ends(size, app, work, len(good))
    assert sorted(team.lines(team.log_of(work, "done"))) == names, "every file is done exactly once"
    _check_commits(Path(work["folder"]) / "repository", names)
    lives = list(_lives(app))
    _check_owners(lives)
    _check_counts(size, work, chaos, lives)
    _check_late(app, work, chaos)
    _check_memory(size, app, work, names)
    _check_prompts(app, work)
    saved = [drive(account_of(app, team.task_of(number))).saved.steps for number in good]
    saved += [drive(account_of(app, name)).saved.steps for name in (team.COORDINATOR, team.agent_of(0))]
    assert sum(saved) > 0, "what was done was not done again"


def _check_chaos(chaos: Chaos) -> None:
    assert chaos.killed and chaos.coordinators and chaos.supervisors, f"somebody was to be killed, and was not: {chaos}"
    assert chaos.stopped and chaos.late, "no worker was stopped past its lease while it waited for the model"


def _check_ends(size: Size, app: Perdure, work: team.Work, good: int) -> None:
    ended = record(app, team.COORDINATOR)
    assert (ended.status, ended.result) == ("completed", {"done": good, "failed": 1}), ended.error
    poisoned = record(app, team.task_of(work["poison"]))
    assert poisoned.status == "failed" and poisoned.error["type"] == "CrashLoop", poisoned.error
    assert poisoned.error["losses"] == size.attempts and "lost" in poisoned.error["message"]
    assert record(app, team.REVIEWER).result == good
    assert team.lines(team.log_of(work, "review")) == ["completed"], "the reviewer begins after the end only"


def _check_commits(repository: Path, names: list[str]) -> None:
    told = git(repository, "log", "--format=%x00%B", "--name-only", "HEAD").split("\0")[1:]
    made = [one.strip().splitlines()[-1] for one in told if "Perdure-Task: " in one]
    assert sorted(made) == [f"out/{name}" for name in names], "one commit a file"
    assert all("Perdure-Checkpoint: " in one for one in told if "Perdure-Task: " in one)
    status = git(repository, "status", "--porcelain")
    assert status == "A  staged.txt\n", f"the user's staged file is as it was, and nothing else is open: {status}"


# ── the record ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Life:
    """A task as its record tells it."""

    id: str
    attempts: tuple[Attempt, ...]
    events: list[Event]

    def losses(self) -> list[Event]:
        return [event for event in self.events if event.kind == "worker_lost"]


def _lives(app: Perdure) -> Iterator[Life]:
    for row in engine(app).query("list_all", {"namespace": "default", "after": "", "limit": 10_000}):
        yield Life(row[2], tuple(record(app, row[2]).attempts), list(drive(app.tasks.events(row[2]))))


def _check_owners(lives: list[Life]) -> None:
    """By the lease log: each attempt begins after the one before it has ended, under the next epoch."""
    for life in lives:
        begun = [one for one in life.events if one.kind in ("attempt started", "attempt taken over")]
        epochs = [one.data["epoch"] for one in begun]
        assert epochs == sorted(set(epochs)), f"{life.id} had two owners: {epochs}"
        for before, after in pairwise(life.attempts):
            assert before.ended_at is not None and before.ended_at <= after.started_at, f"two owners of {life.id}"
        ends = [one.number for one in life.events if one.kind in ("completed", "failed")]
        assert len(ends) == 1, f"{life.id} ended {len(ends)} times"
        assert all(one.number < ends[0] for one in begun), f"{life.id} had ended, and was run again"


def _check_counts(size: Size, work: team.Work, chaos: Chaos, lives: list[Life]) -> None:
    """The record and the chaos log say the same: every loss has its cause there, and every kill its losses here."""
    poisoned = set(map(int, team.lines(team.log_of(work, "poisoned"))))
    hung = list(map(int, team.lines(team.log_of(work, "hung"))))
    dead = {*chaos.killed, *poisoned, *chaos.orphans}
    losses = [(life, event) for life in lives for event in life.losses()]
    for life, event in losses:
        pid, why = event.data["pid"], event.data["why"]
        assert why in (DIED, SILENT, STALLED), event.data
        assert why != DIED or pid in dead | set(chaos.stopped), f"{life.id} lost {pid}, which nobody had killed"
        if size.is_timed:  # a machine with too much to do makes a worker silent without anybody's doing
            assert why != SILENT or pid in chaos.stopped, f"{life.id} lost {pid}, which nobody had stopped; {chaos}"
    lost = Counter(event.data["pid"] for _, event in losses if event.data["why"] == DIED)
    ended = Counter(one.pid for life in lives for one in life.attempts if one.ended == DIED)
    assert lost == ended, "as many attempts ended by the death of their process as losses were told"
    for pid, at in chaos.killed.items():
        held = [one for life in lives for one in life.attempts if one.pid == pid and _was_open(one, at)]
        assert all(one.ended == DIED for one in held), f"{pid} was killed, and its attempts ended otherwise: {held}"
    (frozen,) = [life for life in lives if life.id == team.task_of(work["hangs"])]
    stalls = [one.data["pid"] for one in frozen.events if one.kind == "stalled"]
    # A machine with too much to do finds the step out before it has noted that it hangs.
    assert stalls and (not hung or hung[-1] in stalls), "the frozen step was found out, and given to another"
    (poison,) = [life for life in lives if life.id == team.task_of(work["poison"])]
    assert len(poison.losses()) == size.attempts >= len(poisoned), "the poison file was tried so often"
    if size.is_timed:
        _check_times(chaos, losses)


def _was_open(attempt: Attempt, at: float) -> bool:
    """True if an attempt had begun and not ended at that moment."""
    return attempt.started_at.timestamp() < at and (attempt.ended_at is None or attempt.ended_at.timestamp() > at)


def _check_times(chaos: Chaos, losses: list[tuple[Life, Event]]) -> None:
    """A loss is noticed within a lease: a death as such, a silence when the lease is over."""
    deaths = sorted(_after(chaos.killed, losses, DIED))
    silences = sorted(_after(chaos.stopped, losses, SILENT))
    print(f"s4: {len(chaos.killed)} killed, {len(losses)} tasks lost their worker", flush=True)
    print(f"s4: noticed after {deaths[len(deaths) // 2]:.2f} s in the middle, {deaths[-1]:.2f} s at most;", end=" ")
    print(f"silence after {silences[-1]:.2f} s", flush=True)
    assert deaths[-1] <= LEASE, f"a death was noticed after {deaths[-1]:.1f} s"
    assert silences and silences[-1] <= LEASE + 2, "a silence is noticed when a lease is over, and somebody looks"


def _after(moments: dict[int, float], losses: list[tuple[Life, Event]], why: str) -> list[float]:
    """How many seconds after what was done to each process its loss was noticed, by the first task that tells of it."""
    told: dict[int, list[float]] = {}
    for _, event in losses:
        if event.data["why"] == why and event.data["pid"] in moments:
            told.setdefault(event.data["pid"], []).append(event.at.timestamp())
    return [min(times) - moments[pid] for pid, times in told.items()]


def _check_late(app: Perdure, work: team.Work, chaos: Chaos) -> None:
    """What the stopped worker wrote when it went on was refused, and is nowhere."""
    told = (Path(work["folder"]) / "supervisors.log").read_text(errors="replace")
    for call in chaos.late:
        task_id = team.task_of(call["number"])
        assert record(app, task_id).result != call["token"], f"{task_id} took the answer of a worker that had lost it"
        refused = [line for line in told.splitlines() if task_id in line and "lease" in line]
        assert refused, f"nobody was told that the write for {task_id} was refused"


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def _check_memory(size: Size, app: Perdure, work: team.Work, names: list[str]) -> None:
    state = _state(app, team.COORDINATOR)
    assert state["data"].pop("__outcome") == "success"
    agents = {team.agent_of(agent): _state(app, team.agent_of(agent)) for agent in range(size.agents)}
    assert sorted(state["data"]) == sorted(agents), "the data of every agent, under its name"
    assert all(state["data"][name] == one["data"] for name, one in agents.items())
    assert sorted(state["files"]) == names and len(set(state["files"])) == len(names)
    joined = [one for agent in agents.values() for one in agent["checkpoints"]]
    assert state["checkpoints"][:-1] == joined, "the agents' checkpoints, one after the other, and the last one"
    ticked = (Path(work["folder"]) / "plans" / "plan.md").read_text()
    assert (ticked.count("[x]"), ticked.count("[ ]")) == (len(names), 1)


def _state(app: Perdure, task_id: str) -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        async with app.memory(task_id, [DurableTaskState(merge="namespace"), PlanLayer()]) as memory:
            found: dict[str, Any] = memory.layer("task_state").state
            return found

    return asyncio.run(read())


def _check_prompts(app: Perdure, work: team.Work) -> None:
    told = [json.loads(line) for line in team.lines(team.log_of(work, "prompts"))]
    assert told and all(one["tokens"] <= 800 and one["state"] for one in told)
    assert any("An earlier one ended" in one["continuity"] for one in told), "a prompt after a kill says so"
    restored = team.lines(team.log_of(work, "restored"))
    assert restored, "the coordinator was killed, and what it had around it came back"
    last = [one for one in told if one["task"] == team.COORDINATOR][-1]["continuity"]
    assert f"was restored from checkpoint {restored[-1]}" in last, "a prompt tells the last restore report"
    assert "variables" in last
