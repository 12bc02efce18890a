"""`perdure bench` measures every line beside its floor. How fast anything was is not for a test to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.bench import NAMES, Figure, Report, Section
from perdure.bench.distributions import applies, core_install
from perdure.bench.figures import Budget, Series
from tests.support import postgres

PATIENCE = 300  # it takes a few seconds; a busy machine more
WITH_PROTOTYPE = {"checkpoint", "chain", "together", "tasks", "crowd", "steps"}
PACKAGE = "import perdure (each name is loaded when it is used)"


def bench(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    command = [sys.executable, "-m", "perdure", "bench", *words]
    return subprocess.run(command, env={**kept, **env}, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture(scope="module")
def server() -> str:
    try:
        return postgres.ensure_server()
    except postgres.ServerUnavailable as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def section(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `perdure bench --quick --json` says of one engine."""
    folder = tmp_path_factory.mktemp("bench")
    words = ["--engine", request.param, "--quick", "--json", "--folder", str(folder)]
    if request.param == "postgres":
        words += ["--url", request.getfixturevalue("server")]
    for name in set(NAMES) - {"import"}:
        words += ["--only", name]
    done = bench(*words)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    (found,) = report["sections"]
    assert found["engine"] == request.param
    assert list(folder.iterdir()) == []
    return found


@pytest.mark.req("R20")
def test_every_line_has_its_figure_and_its_floor(section: dict[str, Any]) -> None:
    for line in section["figures"]:
        assert line["figure"] > 0, line
        assert line["floor"] > 0 and line["floor_is"], line
        assert line["ratio"] == pytest.approx(line["figure"] / line["floor"])


def test_no_line_is_missing(section: dict[str, Any]) -> None:
    wanted = set(NAMES) - {"import"}
    if section["engine"] == "postgres":
        wanted -= {"share", "shell"}  # how SQLite shares its one file; shells are measured once
    else:
        wanted -= {"session"}  # of PostgreSQL
    assert {line["name"] for line in section["figures"]} == wanted


def test_a_budget_is_judged_where_there_is_one(section: dict[str, Any]) -> None:
    judged = [line for line in section["figures"] if line["budget"] is not None]
    assert len(judged) >= 8
    for line in section["figures"]:
        assert (line["met"] is None) == (line["budget"] is None)


def test_the_bare_prototype_runs_beside_perdure(section: dict[str, Any]) -> None:
    beside = {line["name"] for line in section["figures"] if line["prototype"] is not None}
    assert beside == WITH_PROTOTYPE


def test_no_database_is_left_behind(section: dict[str, Any], server: str) -> None:
    import psycopg

    with psycopg.connect(server) as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'perdure_bench_%'").fetchall()
    assert left == []


def test_starting_up_is_measured_without_a_store() -> None:
    done = bench("--quick", "--json", "--only", "import")
    (section,) = json.loads(done.stdout)["sections"]
    lines = {line["what"]: line for line in section["figures"]}
    assert section["engine"] == "process"
    names = lines["from perdure import Perdure, durable, step, effect"]
    assert names["floor"] > 0 and names["figure"] > lines[PACKAGE]["figure"]
    assert lines["distributions of the core install"]["detail"]["names"] == sorted(core_install("perdure"))


def test_people_get_a_table(tmp_path: Path) -> None:
    done = bench("--quick", "--only", "size", "--only", "commit", "--folder", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"sqlite: {tmp_path}")
    assert "size of the store per trivial entry" in done.stdout


def test_a_server_out_of_reach_is_said_in_three_lines() -> None:
    done = bench("--engine", "postgres", "--quick", "--url", "postgresql://nobody:secret@127.0.0.1:1/none")
    assert done.returncode == 7
    assert len(done.stderr.splitlines()) >= 3 and "secret" not in done.stderr


def test_bench_keeps_away_from_a_store_in_use() -> None:
    done = bench("--store", "somewhere.db")
    assert done.returncode == 2 and "its own store" in done.stderr


# ── judging ──────────────────────────────────────────────────────────────────────────────────────


def figure(value: float, budget: Budget | None = None, **more: Any) -> Figure:
    return Figure(name="x", what="x", unit="ms", figure=value, budget=budget, **more)


def test_a_budget_bounds_from_above_or_from_below() -> None:
    assert figure(2.0, Budget(2.0, "≤ 2")).met is True
    assert figure(2.1, Budget(2.0, "≤ 2")).met is False
    assert figure(40.0, Budget(50.0, "≥ 50", at_least=True)).met is False
    assert figure(40.0).met is None


def test_missed_budgets_are_named() -> None:
    figures = [figure(3.0, Budget(2.0, "≤ 2")), figure(1.0, Budget(2.0, "≤ 2")), figure(9.0)]
    section = Section(engine="sqlite", where="", figures=figures)
    assert Report(quick=True, machine={}, sections=[section], left_out={}).missed == ["sqlite: x"]


def test_a_floor_that_varied_twofold_is_noisy() -> None:
    assert Series([1.0, 2.5, 1.2]).spread == 2.5
    assert figure(1.0, floor=1.0, floor_spread=2.5).is_noisy
    assert not figure(1.0, floor=1.0, floor_spread=1.9).is_noisy


@pytest.mark.parametrize(
    "marker, holds",
    [
        ('python_version < "3.4"', False),
        ('python_full_version >= "3.11"', True),
        ('extra == "rich"', False),
        ('(sys_platform == "linux" or sys_platform == "win32") and python_version > "3.9"', True),
        ("platform_python_implementation not in 'PyPy'", True),
    ],
)
def test_a_requirement_counts_where_its_marker_holds(marker: str, holds: bool) -> None:
    assert applies(marker) is holds
