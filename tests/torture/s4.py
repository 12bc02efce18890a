"""S4, a crash storm with a team: what is killed, and what must hold afterwards. Nobody acts but the supervisors.

Real supervisors (`perdure.cli.processes.supervisor`) keep real workers (`perdure worker`) going. The storm kills
workers at
random and, once each: whoever works on the coordinator, a supervisor; it stops a worker that waits for the model until
its tasks are taken over, and lets it go on. tests/scenarios has it small, `python -m tests.torture --part s4` in full.

What was done to whom is the chaos log, and what must hold afterwards is in s4_checks.py.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure import Perdure
from perdure._ground.bridge import drive
from tests.torture import s4_team as team
from tests.torture.s4_checks import Chaos, Size, check
from tests.torture.s4_look import (
    children_of,
    git,
    holder,
    is_over,
    is_writing,
    open_calls,
    record,
    until,
    within,
    workers,
)

ROOT = Path(__file__).resolve().parents[2]
RESTARTED = 3.0  # an interpreter, and what it imports
TAKEN_OVER = 20.0  # a lease is five seconds
_SUPERVISE = """
import sys
from perdure.cli.processes import supervisor as supervising
supervising.LONGEST_WAIT = 0.4  # a storm is no reason to wait
options = ["--concurrency", "20", "--stalled-after", sys.argv[2], "--restart-stalled"]
argv = supervising.worker_argv(sys.argv[1], options)
sys.exit(supervising.Supervisor(argv, int(sys.argv[3]), 5.0, lambda line, value: print(line, flush=True)).run())
"""


SMALL = Size(files=10, agents=3, kills=5, lasting=60.0, every=0.3, seconds=0.9, stalled_after="3s", attempts=2)
FULL = Size(
    workers=4,
    files=42,
    agents=8,
    kills=200,
    lasting=60.0,
    every=0.3,
    seconds=3.0,
    stalled_after="10s",
    attempts=3,
    is_timed=True,
)


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
            chaos = storm(size, app, work, running, random.Random(seed))
            until(lambda: all(record(app, name).is_finished for name in (team.COORDINATOR, team.REVIEWER)))
        check(size, app, work, chaos)
    finally:
        drive(app.close())


def run_full(seed: int) -> None:
    """In full; even seeds on SQLite, odd ones on PostgreSQL."""
    from tests.support.folders import fast_folder
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
    command = [sys.executable, "-c", _SUPERVISE, f"{team.__file__}:app", size.stalled_after, str(size.workers)]
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


def storm(
    size: Size, app: Perdure, work: team.Work, running: list[subprocess.Popen[bytes]], rng: random.Random
) -> Chaos:
    chaos = Chaos()
    until(lambda: workers(app, busy=True))
    end = time.monotonic() + size.lasting
    special = sorted(rng.sample(range(min(size.kills, 8)), 3))
    for turn in range(size.kills):
        if is_over(app) or (time.monotonic() > end and turn > special[-1]):
            break
        time.sleep(size.every)
        began = time.monotonic()
        if turn == special[0]:
            kill_coordinator(app, work, chaos)
        elif turn == special[1]:
            kill_supervisor(running.pop(rng.randrange(len(running))), chaos)
        elif turn == special[2]:
            stop_past_lease(app, work, chaos, rng)
        else:
            kill_somebody(app, work, chaos, rng)
        if turn in special:
            end += time.monotonic() - began  # what is waited for is no storm
    return chaos


def frozen(app: Perdure, work: team.Work) -> set[int]:
    """Who hangs and has not been found out yet: killed now, it would never be found to hang."""
    hung = {int(line) for line in team.lines(team.log_of(work, "hung"))}
    kinds = [event.kind for event in drive(app.tasks.events(team.task_of(work["hangs"])))] if hung else []
    return set() if "stalled" in kinds else hung


def kill(chaos: Chaos, pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        chaos.killed[pid] = time.time()


def kill_somebody(app: Perdure, work: team.Work, chaos: Chaos, rng: random.Random) -> None:
    """A worker at random, of several: somebody has to be there who could notice. Not when there is one alone."""
    within(RESTARTED, lambda: len(workers(app)) > 1)
    living = workers(app)
    chosen = sorted(set(living) - frozen(app, work))
    if len(living) > 1 and chosen:
        kill(chaos, rng.choice(chosen))


def kill_coordinator(app: Perdure, work: team.Work, chaos: Chaos) -> None:
    """Whoever works on the coordinator, once it has saved what it has around it."""

    def found() -> int | None:
        pid = holder(app, team.COORDINATOR)
        saved = any(event.kind == "saved" for event in drive(app.tasks.events(team.COORDINATOR)))
        return pid if saved and pid not in frozen(app, work) and len(workers(app)) > 1 else None

    pid = until(found)
    kill(chaos, pid)
    chaos.coordinators.append(pid)


def kill_supervisor(victim: subprocess.Popen[bytes], chaos: Chaos) -> None:
    """Its workers are told to leave by the kernel; one that is in the middle of something may be lost."""
    chaos.orphans |= children_of(victim.pid)
    victim.kill()
    victim.wait()
    chaos.supervisors.append(victim.pid)


def stop_past_lease(app: Perdure, work: team.Work, chaos: Chaos, rng: random.Random) -> None:
    """SIGSTOP a worker that waits for the model, until its tasks are others'; then SIGCONT: its answer is refused.

    One that stands still in the middle of a write keeps a SQLite file to itself: it goes on at once, and another is
    chosen.
    """
    while not is_over(app):
        waiting = [call for call in open_calls(work) if holder(app, team.task_of(call["number"])) == call["pid"]]
        calls = [call for call in waiting if call["number"] != work["hangs"]]
        if not calls:
            time.sleep(0.02)
            continue
        call = rng.choice(calls)
        pid = call["pid"]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            chaos.stopped[pid] = time.time()
            try:
                is_lost = call in open_calls(work) and not is_writing(pid) and within(TAKEN_OVER, is_free(app, pid))
            finally:
                os.kill(pid, signal.SIGCONT)
            if is_lost:
                until(lambda call=call: call not in open_calls(work))
                chaos.late.append(call)
                return


def is_free(app: Perdure, pid: int) -> Callable[[], bool]:
    return lambda: pid not in workers(app, busy=True)
