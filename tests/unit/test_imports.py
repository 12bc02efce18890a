"""What a program loads by its first line, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import perdure
from perdure import _durable, _runtime, _tasks

SOURCE = Path(perdure.__file__).parents[1]
FIRST_LINE = "from perdure import Perdure, durable, step, effect"

# Of others: what is large, or needed by few.
NOT_OF_OTHERS = {
    "apsw", "backports.zstd", "click", "compression.zstd", "cronsim", "cryptography", "ctypes", "difflib", "email",
    "getpass", "hmac", "http", "importlib.metadata", "importlib.resources", "keyring", "mmap", "multiprocessing",
    "pickle", "psycopg", "pydantic", "random", "rich", "secrets", "shutil", "sqlite3", "tempfile", "urllib.request",
}  # fmt: skip
# Of ours: whole parts, and in the others what carries a function out, what only workers do, what few functions ask for.
NOT_OF_OURS = {
    "perdure._runtime", "perdure._store.memory", "perdure._store.postgres", "perdure._store.sqlite", "perdure._worker",
    "perdure.cli", "perdure.keeper", "perdure.memory", "perdure.sync", "perdure.testing",
    "perdure._durable.blocking", "perdure._durable.execute", "perdure._durable.forking", "perdure._durable.inbox",
    "perdure._durable.loops", "perdure._durable.models", "perdure._durable.pauses", "perdure._durable.readers",
    "perdure._durable.reducing", "perdure._durable.scheduling", "perdure._durable.starting",
    "perdure._durable.streams", "perdure._durable.transactions", "perdure._durable.triggering",
    "perdure._durable.whereabouts",
    "perdure._tasks.audit", "perdure._tasks.checks", "perdure._tasks.doctor", "perdure._tasks.due",
    "perdure._tasks.gc", "perdure._tasks.handlers", "perdure._tasks.memories", "perdure._tasks.moving",
    "perdure._tasks.rotation",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    told = f"{code}\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", told], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_first_line_of_a_program_loads_only_what_a_function_is_made_with() -> None:
    loaded = loaded_by(FIRST_LINE)
    assert loaded & (NOT_OF_OTHERS | NOT_OF_OURS) == set()
    assert "perdure._durable.functions" in loaded


def test_naming_the_package_loads_nothing_of_it() -> None:
    assert {name for name in loaded_by("import perdure") if name.startswith("perdure")} == {"perdure"}


def test_a_first_function_loads_nothing_of_what_it_does_not_use() -> None:
    code = f"""
import asyncio
{FIRST_LINE}

@step
async def one(): return 1

@durable
async def first(): return await one()

async def main():
    async with Perdure("memory://first") as app:
        await app.run("first", first)

asyncio.run(main())"""
    few = {"inbox", "loops", "models", "pauses", "readers", "scheduling", "streams", "transactions", "triggering"}
    unused = {"perdure._runtime", "perdure._tasks.checks", "perdure._tasks.due", "perdure._worker", "random"}
    loaded = loaded_by(code)
    assert loaded & {*unused, *(f"perdure._durable.{name}" for name in few)} == set()
    assert "perdure._durable.execute" in loaded


def test_no_dataclass_of_ours_is_made_on_the_way() -> None:
    """A dataclass is compiled from text when it is made, fifty times as dear as a Struct."""
    code = f"""
import dataclasses
made, make = [], dataclasses._process_class
def noted(cls, *rest):
    made.append(cls.__module__)
    return make(cls, *rest)
dataclasses._process_class = noted
{FIRST_LINE}
print(*(f'made={{module}}' for module in made))"""
    assert [line for line in loaded_by(code) if line.startswith("made=perdure")] == []


# ── doors that load a name when it is used ───────────────────────────────────────────────────────


@pytest.mark.parametrize("door", [perdure, _durable, _runtime, _tasks], ids=lambda door: door.__name__)
def test_each_name_of_a_door_leads_somewhere(door: ModuleType) -> None:
    names: list[str] = door.__all__
    found = __import__(door.__name__, fromlist=names)  # as `from … import` does: a module is imported
    assert [name for name in names if not hasattr(found, name)] == []


@pytest.mark.parametrize("door", [_durable, _runtime, _tasks], ids=lambda door: door.__name__)
def test_no_name_that_is_loaded_later_is_also_a_module(door: ModuleType) -> None:
    """Once the module were imported by somebody, its door would give the module for the name."""
    modules = {path.stem for path in Path(door.__path__[0]).iterdir()}
    assert modules & set(door._HOME_OF) == set()
