"""The migration that everybody writes, killed at random moments: each statement once. More of it in tests/torture."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.sessions.kit import Stage
from tests.sessions.migration import Migrations

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
