"""Which processes the keeper takes for a unit's: never everybody's."""

from __future__ import annotations

import pytest

from perdure.keeper import processes


@pytest.mark.parametrize("session", [0, 1, -1])
def test_a_unit_without_a_process_has_no_processes(session: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, processes that came from outside are in session 0, as a unit without a process seems to be."""
    monkeypatch.setattr(processes, "all_pids", lambda: [4711, 4712])
    monkeypatch.setattr(processes, "_stat", lambda pid: ["S", "0", "0", str(session), *["0"] * 20])
    assert list(processes.of_unit(session, "nobodys-cookie", 1)) == []
