"""Which processes the keeper takes for a unit's: never everybody's."""

from __future__ import annotations

import socket
import threading

import pytest

from perdure.keeper.anchor import receive, send
from perdure.keeper.core.anchor_client import Anchored, Exit
from perdure.keeper.process import processes


@pytest.mark.parametrize("session", [0, 1, -1])
def test_a_unit_without_a_process_has_no_processes(session: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, processes that came from outside are in session 0, as a unit without a process seems to be."""
    monkeypatch.setattr(processes, "all_pids", lambda: [4711, 4712])
    monkeypatch.setattr(processes, "_stat", lambda pid: ["S", "0", "0", str(session), *["0"] * 20])
    assert list(processes.of_unit(session, "nobodys-cookie", 1)) == []


def test_an_exit_that_is_told_while_an_answer_is_waited_for_is_heard() -> None:
    ours, theirs = socket.socketpair()
    anchored, rung = Anchored(ours), []
    anchored.told = lambda: rung.append("told")

    def answer() -> None:
        receive(theirs)
        send(theirs, {"exit": [11, 12, 0]})
        send(theirs, {})

    thread = threading.Thread(target=answer)
    thread.start()
    anchored.watch(5, 6)
    thread.join()
    assert rung == ["told"] and anchored.hear() == [Exit(11, 12, 0)]
    ours.close()
    theirs.close()
