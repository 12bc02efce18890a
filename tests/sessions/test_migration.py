"""The migration that everybody writes, killed at random moments: each statement once. More of it in tests/torture."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from perdure._runtime.sessions.postgres import open_postgres
from tests.sessions.kit import Stage
from tests.sessions.migration import Migrations, be_long_agent

SEEDS = 6


@pytest.mark.req("R79")
@pytest.mark.parametrize("rebuild", ["auto", "never"])
async def test_a_migration_on_postgres_ends_with_each_row_once_wherever_it_is_killed(
    stage: Stage, tmp_path: Path, rebuild: Literal["auto", "never"]
) -> None:
    rounds = Migrations(stage, "postgres", tmp_path, rebuild=rebuild)
    for seed in range(SEEDS):
        await rounds.round(seed)
    assert rounds.kills >= SEEDS


@pytest.mark.req("R79")
async def test_a_migration_on_sqlite_ends_with_each_row_once_wherever_it_is_killed(
    stage: Stage, tmp_path: Path
) -> None:
    rounds = Migrations(stage, "sqlite", tmp_path)
    for seed in range(SEEDS):
        await rounds.round(seed)
    assert rounds.kills >= SEEDS


@pytest.mark.req("R79")
async def test_three_thousand_steps_of_one_insert_killed_from_outside_are_three_thousand_rows(
    stage: Stage, tmp_path: Path
) -> None:
    rounds = Migrations(stage, "postgres", tmp_path, rebuild="never")
    for kill_at in (1, 2, 3, 0):
        await open_postgres(stage.place, "main-9", rounds.url, hold="10m")
        agent = stage.children.start(be_long_agent, rounds.where, rounds.store, 9, 3000)
        for _ in range(kill_at):
            assert agent.heard() == "begun"
        if kill_at:
            agent.kill()
    while agent.heard() == "begun":
        pass
    assert rounds._outside("SELECT count(*) FROM moved") == [3000]
    assert rounds._outside("SELECT count(DISTINCT row) FROM moved") == [3000]
