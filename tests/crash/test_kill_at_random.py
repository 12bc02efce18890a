"""Killed anywhere: at a line of Python, at a file operation of SQLite, inside a system call."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perdure._ground.bridge import drive
from tests.support.processes import Child, Link, Nursery, say
from tests.torture import kills
from tests.torture.checks import dump
from tests.torture.kills import Home, go_on, look, outcome
from tests.torture.verbs import VERBS

SEEDS = 10  # a test


@pytest.mark.req("R23")
@pytest.mark.parametrize("verb", ["checkpoint", "large_checkpoint"])
@pytest.mark.parametrize("first", range(0, 30, SEEDS))
def test_a_checkpoint_killed_at_random_leaves_the_newest_whole_one(first: int, verb: str) -> None:
    for seed in range(first, first + SEEDS):
        kills.run(seed, verb=verb)


@pytest.mark.req("R28")
@pytest.mark.parametrize("first", range(0, 40, SEEDS))
def test_a_pause_killed_at_random_is_running_or_paused_with_its_data(first: int) -> None:
    for seed in range(first, first + SEEDS):
        kills.run(seed, verb="pause_with_checkpoint")


@pytest.mark.req("R11", "R23", "R28")
def test_any_call_killed_at_random_is_whole_or_not_there(home: Home) -> None:
    for seed in range(SEEDS):
        own = home._replace(namespace=f"{home.namespace}-{seed}")
        kills.run(1000 + seed, home=own)


# ── inside a system call, where the machine lets us trace one ────────────────────────────────────

CALLS = ("pwrite64", "fdatasync")
DEEPEST = 3


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("verb", ["create", "checkpoint", "pause_with_checkpoint", "complete"])
def test_a_call_killed_inside_a_system_call_is_whole_or_not_there(
    sqlite_home: Home, children: Nursery, verb: str
) -> None:
    for call in CALLS if _can_trace() else ():
        for number in range(1, DEEPEST + 1):
            own = sqlite_home._replace(url=sqlite_home.url.replace("p.db", f"{call}-{number}.db"))
            child = children.start(act_when_told, own, verb)
            before = child.heard()
            with _killed_inside(child, call, number):
                child.tell()
                acknowledged = bool(child.rest())
                child.wait()
            found = children.run(look, own)
            assert found in (before, outcome(verb))
            assert not acknowledged or (found == outcome(verb) and number > 1)
            children.run(go_on, own)
    for number in range(1, 1 + DEEPEST * len(CALLS)):  # the same operations, from inside SQLite's VFS
        own = sqlite_home._replace(url=sqlite_home.url.replace("p.db", f"vfs-{number}.db"))
        kills.kill_and_check(own, verb, "blocking", kills.Death("file", number))


def act_when_told(link: Link, home: Home, verb: str) -> None:
    app = home.open()
    task = drive(VERBS[verb].prepare(app))
    say(link, dump(app))
    link.recv()
    drive(VERBS[verb].act(app, task))


def _can_trace() -> bool:
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "-qq", "true"], capture_output=True).returncode == 0


@contextmanager
def _killed_inside(child: Child, call: str, number: int) -> Iterator[None]:
    """Have the kernel kill the child when it enters this system call for the `number`th time."""
    fault = f"inject={call}:signal=SIGKILL:when={number}"
    command = ["strace", "-f", "-p", str(child.pid), "-e", f"trace={','.join(CALLS)}", "-e", fault]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        first = tracer.stderr.readline()
        assert re.search(r"attached", first), first
        try:
            yield
        finally:
            tracer.stderr.read()
