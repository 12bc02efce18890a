"""Deciding is pure: modules that decide read no clock, file or environment, await nothing and start nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import perdure

SOURCE = Path(perdure.__file__).parent
# Rooms and modules whose docstring says that they are pure.
PURE = (
    "_model",
    "_replay",
    "_ground/encoding/deltas.py",
    "_ground/encoding/list_splice.py",
    "_runtime/restore/report.py",
    "_runtime/units/verdicts.py",
    "_runtime/sessions/postgres_verdicts.py",
    "_tasks/checkpoints/retention.py",
    "_worker/losses/death_policy.py",
    "_worker/losses/silence_clock.py",
)
# It draws the random part of a new token, which is its one job besides reading tokens.
EXCEPT = SOURCE / "_model" / "waits" / "token.py"
# What reads or changes the world outside the process's own values.
WORLD = {"apsw", "asyncio", "io", "multiprocessing", "os", "psycopg", "random", "secrets", "select", "shutil", "signal"}
WORLD |= {"socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib"}
CLOCKS = {"now", "today", "utcnow", "getrandom", "uuid1", "uuid4", "open", "read_text", "read_bytes", "write_text"}


def modules() -> list[Path]:
    found = [SOURCE / name for name in PURE]
    files = [file for path in found for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return [file for file in files if file != EXCEPT]


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_decides_touches_nothing_outside(module: Path) -> None:
    touched = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            touched |= {name.name for name in node.names if name.name.partition(".")[0] in WORLD}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in WORLD:
            touched.add(str(node.module))
        elif isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith):
            touched.add(f"waits at line {node.lineno}")
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            touched |= {called} & CLOCKS
    assert touched == set()
