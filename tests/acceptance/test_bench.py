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
from perdure.bench.figures import Budget, Series
from perdure.bench.lines.distributions import applies, core_install
from tests.support import postgres

PATIENCE = 300  # it takes a few seconds; a busy machine more
WITH_PROTOTYPE = {"checkpoint", "chain", "together", "tasks", "crowd", "steps"}
WITHOUT_STORE = {"import", "adapters"}
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


def section(engine: str, folder: Path, *words: str) -> Any:
    """What `perdure bench --quick --json` says of one engine."""
    only = [word for name in set(NAMES) - WITHOUT_STORE for word in ("--only", name)]
    done = bench("--engine", engine, "--quick", "--json", "--folder", str(folder), *words, *only)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = json.loads(done.stdout)["sections"]
    assert found["engine"] == engine
    assert list(folder.iterdir()) == []
    return found


# One test for each engine: a second one would measure everything once more, in another worker.
@pytest.mark.req("R20")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_line_is_there_with_its_figure_its_floor_and_a_judgement(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    words = ["--url", request.getfixturevalue("server")] if engine == "postgres" else []
    lines = section(engine, tmp_path, *words)["figures"]
    for line in lines:
        assert line["figure"] > 0, line
        if line["floor"] is None:  # the bytes and requests of a page have nothing beside them but a budget
            assert line["name"] == "pages" and line["budget"] is not None, line
        else:
            assert line["floor"] > 0 and line["floor_is"], line
            assert line["ratio"] == pytest.approx(line["figure"] / line["floor"])
        assert (line["met"] is None) == (line["budget"] is None)
    # How SQLite shares its one file; shells are measured once; sessions are of PostgreSQL.
    elsewhere = {"share", "shell"} if engine == "postgres" else {"session"}
    assert {line["name"] for line in lines} == set(NAMES) - WITHOUT_STORE - elsewhere
    assert sum(line["budget"] is not None for line in lines) >= 8
    assert {line["name"] for line in lines if line["prototype"] is not None} == WITH_PROTOTYPE
    if engine == "postgres":
        assert databases_left(words[1]) == []


def databases_left(server: str) -> list[Any]:
    import psycopg

    with psycopg.connect(server) as connection:
        return connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'perdure_bench_%'").fetchall()


def test_starting_up_and_adapters_are_measured_without_a_store() -> None:
    done = bench("--quick", "--json", "--only", "import", "--only", "adapters")
    (section,) = json.loads(done.stdout)["sections"]
    lines = {line["what"]: line for line in section["figures"]}
    assert section["engine"] == "process"
    names = lines["from perdure import Perdure, durable, step, effect"]
    assert names["floor"] > 0 and names["figure"] > lines[PACKAGE]["figure"]
    assert lines["distributions of the core install"]["detail"]["names"] == sorted(core_install("perdure"))
    frameworks = [
        what.split(":")[0] for what, line in lines.items() if line["name"] == "adapters" and line["floor"] > 0
    ]
    assert frameworks == ["LangGraph", "Pydantic AI", "OpenAI Agents", "Agent Framework", "Claude Agent SDK"]


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
