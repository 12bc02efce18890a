"""S4, a crash storm with a team, small; `python -m tests.torture --part s4` has it in full."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.torture import s4


@pytest.mark.req("R47", "R52", "R55", "R111", "R112", "R114", "R115", "R116", "R129", "R138", "R140", "R141")
def test_a_team_comes_to_its_end_through_a_storm(
    shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PERDURE_URL", shared_url)
    s4.run(s4.SMALL, shared_url, tmp_path / "work", seed=int(shared_url.startswith("postgres")))
