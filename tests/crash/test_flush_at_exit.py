"""A process that ends in an orderly way commits what nobody has waited for yet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perdure._ground.bridge import drive
from tests.support.processes import Link, Nursery
from tests.torture.kills import Home

ENTRIES = 40
# The commit waits until the process has begun to end, so that nothing is in the store before.
PROGRAM = """
import atexit, os, signal, sys, threading
from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._store import flush_on_sigterm
from perdure._tasks import leases

def main(url, namespace, entries, way):
    app = Perdure(url, namespace=namespace)
    store = app._store
    flush_on_sigterm()
    task = drive(app.tasks.open("t"))
    hold = drive(leases.take(store, task.id, task.uid, ""))
    ending, commit = threading.Event(), store.engine.commit
    store.engine.commit = lambda writes: (ending.wait(), commit(writes))[1]
    for position in range(entries):
        params = {"line": 1, "position": position, "entry": b"entry"}
        store.committer.submit(store.verb("append_entry", task.uid, params, key="t", fence=hold.fence), urgent=False)
    atexit.register(ending.set)
    if way == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
        ending.set()
        threading.Event().wait()
    elif way == "sys.exit":
        sys.exit(3)
    elif way == "exception":
        raise RuntimeError("the agent is broken")

main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
"""
WAYS = {"return": 0, "sys.exit": 3, "exception": 1, "SIGTERM": -signal.SIGTERM}


@pytest.mark.req("R11")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_queued_is_committed_when_the_process_ends(home: Home, children: Nursery, way: str) -> None:
    source = Path(sys.modules["perdure"].__file__ or "").parents[1]
    program = [sys.executable, "-c", PROGRAM, home.url, home.namespace, str(ENTRIES), way]
    ended = subprocess.run(
        program, env={**os.environ, "PYTHONPATH": str(source)}, check=False, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == WAYS[way], ended.stderr
    assert children.run(entries_of, home) == ENTRIES


def entries_of(_: Link, home: Home) -> int:
    app = home.open()
    task = drive(app.tasks.handle("t"))
    return len(app._store.engine.query("read_journal", {"uid": task.uid, "line": 1}))
