"""S4, a crash storm with a team: what is killed, and what must hold afterwards. Nobody acts but the supervisors.

Real supervisors (`perdure.cli.supervising`) keep real workers (`perdure worker`) going. The storm kills workers at
random and, once each: whoever works on the coordinator, a supervisor; it stops a worker until its tasks are taken
over, and lets it go on. tests/scenarios has it small, `python -m tests.torture --part s4` in full.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from perdure import Perdure, account_of
from perdure._ground.hop import drive
from perdure._store import Engine
from perdure.memory import DurableTaskState, PlanLayer
from tests.torture import s4_team as team

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
TAKEN_OVER = 20.0  # a lease is five seconds
_SUPERVISE = """
import sys
from perdure.cli import supervising
supervising.LONGEST_WAIT = 0.4  # a storm is no reason to wait
options = ["--concurrency", "20", "--stalled-after", sys.argv[2], "--restart-stalled"]
argv = supervising.worker_argv(sys.argv[1], options)
sys.exit(supervising.Supervisor(argv, 2, 5.0, lambda line, value: print(line, flush=True)).run())
"""


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


SMALL = Size(files=10, agents=3, kills=5, lasting=60.0, every=0.3, seconds=0.15, stalled_after="3s", attempts=2)
FULL = Size(files=42, agents=8, kills=200, lasting=60.0, every=0.3, seconds=0.5, stalled_after="10s", attempts=3)


@dataclass
class Chaos:
    """What was done to whom."""

    killed: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)


def run(size: Size, url: str, folder: Path, seed: int = 0) -> None:
    """Have the team work through the storm, and check what must hold.

    Raises:
        AssertionError: something does not.
    """
    work = prepare(size, folder)
    env = {**os.environ, "PERDURE_URL": url, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    os.environ["PERDURE_URL"] = url
    app = Perdure(url)
    try:
        drive(app.start(team.COORDINATOR, team.refactor_all.options(config=team.PATIENT), work))
        drive(app.start(team.REVIEWER, team.review.options(config=team.PATIENT), work))
        with supervisors(size, env, folder) as running:
            chaos = storm(size, app, running, random.Random(seed))
            until(lambda: all(record(app, name).is_finished for name in (team.COORDINATOR, team.REVIEWER)))
        assert chaos.killed, "nobody was killed"
        check(size, app, work, chaos)
    finally:
        drive(app.close())


def run_full(seed: int) -> None:
    """In full; even seeds on SQLite, odd ones on PostgreSQL."""
    from tests.torture.powerloss import fast_folder
    from tests.torture.storm import home_of

    with fast_folder() as folder, home_of(seed, folder, None) as home:
        run(FULL, home.url, folder / "work", seed)


def prepare(size: Size, folder: Path) -> team.Work:
    sources, repository = folder / "sources", folder / "repository"
    sources.mkdir(parents=True)
    for number in range(size.files):
        (sources / team.file_name(number)).write_text(f"old = {number}\n" * 3)
    git(folder, "init", "-q", "-b", "main", str(repository))
    git(repository, "config", "user.name", "Ada")
    git(repository, "config", "user.email", "ada@example.org")
    (repository / "README").write_text("mine\n")
    git(repository, "add", "README")
    git(repository, "commit", "-q", "-m", "first")
    (repository / "staged.txt").write_text("the user's own, staged\n")
    git(repository, "add", "staged.txt")
    return {
        "folder": str(folder),
        "files": size.files,
        "agents": size.agents,
        "poison": size.files - 1,
        "hangs": 1,
        "attempts": size.attempts,
        "seconds": size.seconds,
    }


@contextmanager
def supervisors(size: Size, env: dict[str, str], folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-c", _SUPERVISE, f"{team.__file__}:app", size.stalled_after]
    with (folder / "supervisors.log").open("wb") as log:
        running = [subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log) for _ in range(2)]
        try:
            yield running
        finally:
            for process in running:
                process.terminate()
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                process.kill()
                process.wait()


# ── the storm ────────────────────────────────────────────────────────────────────────────────────


def storm(size: Size, app: Perdure, running: list[subprocess.Popen[bytes]], rng: random.Random) -> Chaos:
    chaos = Chaos()
    until(lambda: workers(app, busy=True))
    end = time.monotonic() + size.lasting
    special = sorted(rng.sample(range(min(size.kills, 20)), 3))
    for turn in range(size.kills):
        if record(app, team.COORDINATOR).is_finished or time.monotonic() > end:
            break
        time.sleep(size.every)
        if turn == special[0]:
            kill(chaos, until(lambda: holder(app, team.COORDINATOR) or record(app, team.COORDINATOR).is_finished))
        elif turn == special[1]:
            victim = running.pop(rng.randrange(len(running)))
            victim.kill()
            victim.wait()
        elif turn == special[2]:
            stop_past_lease(app, chaos, rng)
        else:
            kill(chaos, rng.choice(until(lambda: workers(app))))  # started again, a worker takes its time to be there
    return chaos


def kill(chaos: Chaos, pid: Any) -> None:
    if isinstance(pid, bool):
        return  # the coordinator had ended
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        chaos.killed.append(pid)


def stop_past_lease(app: Perdure, chaos: Chaos, rng: random.Random) -> None:
    """SIGSTOP a worker that is busy, until its tasks are others'; then SIGCONT: what it writes now is refused.

    One that stands still in the middle of a write keeps a SQLite file to itself: then nobody can take over, and
    another is chosen.
    """
    for _ in range(5):
        found = until(lambda: workers(app, busy=True) or record(app, team.COORDINATOR).is_finished)
        if isinstance(found, bool):
            return
        pid = rng.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            chaos.stopped.append(pid)
            try:
                is_taken_over = within(TAKEN_OVER, lambda pid=pid: pid not in workers(app, busy=True))
            finally:
                os.kill(pid, signal.SIGCONT)
            if is_taken_over:
                return


def workers(app: Perdure, *, busy: bool = False) -> list[int]:
    """The pids of living worker processes; `busy` ones hold a lease."""
    me = app._store.presence.process.pid
    rows = engine(app).query("read_workers", {})
    return [row[5] for row in rows if row[5] != me and is_alive(row[5]) and (row[10] or not busy)]


def holder(app: Perdure, task_id: str) -> int | None:
    uid = record(app, task_id).uid
    rows = engine(app).query("read_holder", {"uid": uid})
    return rows[0][6] if rows and rows[0][6] and is_alive(rows[0][6]) else None


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def engine(app: Perdure) -> Engine:
    return app._store.engine


def record(app: Perdure, task_id: str) -> Any:
    found = drive(app.tasks.get(task_id))
    assert found is not None
    return found


def within(seconds: float, is_so: Callable[[], Any]) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def until(is_so: Callable[[], Any]) -> Any:
    """What it answers once it is something; PATIENCE only turns a hang into an error."""
    give_up = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < give_up, "it does not come to its end"
        time.sleep(0.05)
    return found


def git(folder: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, env=env)
    return done.stdout


# ── what must hold ───────────────────────────────────────────────────────────────────────────────


def check(size: Size, app: Perdure, work: team.Work, chaos: Chaos) -> None:
    good = [number for number in range(size.files) if number != work["poison"]]
    names = [team.file_name(number) for number in good]
    _check_ends(size, app, work, len(good))
    assert sorted(team.lines(team.log_of(work, "done"))) == names, "every file is done exactly once"
    _check_commits(Path(work["folder"]) / "repository", names)
    _check_owners(app, chaos, work)
    _check_memory(size, app, work, names)
    _check_prompts(work)
    saved = [drive(account_of(app, team.task_of(number))).saved.steps for number in good]
    saved += [drive(account_of(app, name)).saved.steps for name in (team.COORDINATOR, team.agent_of(0))]
    assert sum(saved) > 0, "what was done was not done again"


def _check_ends(size: Size, app: Perdure, work: team.Work, good: int) -> None:
    ended = record(app, team.COORDINATOR)
    assert (ended.status, ended.result) == ("completed", {"done": good, "failed": 1}), ended.error
    poisoned = record(app, team.task_of(work["poison"]))
    assert poisoned.status == "failed" and poisoned.error["type"] == "CrashLoop", poisoned.error
    assert poisoned.error["losses"] == size.attempts and "lost" in poisoned.error["message"]
    assert record(app, team.REVIEWER).result == good
    assert team.lines(team.log_of(work, "review")) == ["completed"], "the reviewer begins after the end only"
    assert len(team.lines(team.log_of(work, "hung"))) == 1, "the frozen step was given to another"


def _check_commits(repository: Path, names: list[str]) -> None:
    told = git(repository, "log", "--format=%x00%B", "--name-only", "HEAD").split("\0")[1:]
    made = [one.strip().splitlines()[-1] for one in told if "Perdure-Task: " in one]
    assert sorted(made) == [f"out/{name}" for name in names], "one commit a file"
    assert all("Perdure-Checkpoint: " in one for one in told if "Perdure-Task: " in one)
    status = git(repository, "status", "--porcelain")
    assert status == "A  staged.txt\n", f"the user's staged file is as it was, and nothing else is open: {status}"


def _check_owners(app: Perdure, chaos: Chaos, work: team.Work) -> None:
    """By the lease log: each attempt begins after the one before it has ended, under the next epoch."""
    guilty = {*chaos.killed, *chaos.stopped, *map(int, team.lines(team.log_of(work, "poisoned")))}
    guilty |= set(map(int, team.lines(team.log_of(work, "hung"))))
    lost = 0
    for row in engine(app).query("list_all", {"namespace": "default", "after": "", "limit": 10_000}):
        events = drive(app.tasks.events(row[2]))
        epochs = [one.data["epoch"] for one in events if one.kind in ("attempt started", "attempt taken over")]
        assert epochs == sorted(set(epochs)), f"{row[2]} had two owners: {epochs}"
        attempts = record(app, row[2]).attempts
        for before, after in pairwise(attempts):
            assert before.ended_at is not None and before.ended_at <= after.started_at, f"two owners of {row[2]}"
        for event in events:
            if event.kind == "worker_lost":
                lost += 1
                assert event.data["pid"] in guilty or not is_alive(event.data["pid"]), event.data
    assert lost > 0


def _check_memory(size: Size, app: Perdure, work: team.Work, names: list[str]) -> None:
    state = _state(app, work, team.COORDINATOR)
    assert state["data"].pop("__outcome") == "success"
    agents = {team.agent_of(agent): _state(app, work, team.agent_of(agent)) for agent in range(size.agents)}
    assert sorted(state["data"]) == sorted(agents), "the data of every agent, under its name"
    assert all(state["data"][name] == one["data"] for name, one in agents.items())
    assert sorted(state["files"]) == names and len(set(state["files"])) == len(names)
    joined = [one for agent in agents.values() for one in agent["checkpoints"]]
    assert state["checkpoints"][:-1] == joined, "the agents' checkpoints, one after the other, and the last one"
    ticked = (Path(work["folder"]) / "plans" / "plan.md").read_text()
    assert (ticked.count("[x]"), ticked.count("[ ]")) == (len(names), 1)


def _state(app: Perdure, work: team.Work, task_id: str) -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        async with app.memory(task_id, [DurableTaskState(merge="namespace"), PlanLayer()]) as memory:
            found: dict[str, Any] = memory.layer("task_state").state
            return found

    return asyncio.run(read())


def _check_prompts(work: team.Work) -> None:
    told = [json.loads(line) for line in team.lines(team.log_of(work, "prompts"))]
    assert told and all(one["tokens"] <= 800 and one["state"] for one in told)
    after_a_loss = [one for one in told if "An earlier one ended" in one["continuity"]]
    assert after_a_loss, "a prompt after a kill says so"
