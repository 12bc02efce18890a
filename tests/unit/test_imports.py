"""What a program loads by its first line, and what it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import pytest

import perdure
from perdure._moved import MOVED
from tools.make_doors import doors, module_name

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
    "perdure._runtime",
    "perdure._store.memory",
    "perdure._store.postgres",
    "perdure._store.sqlite",
    "perdure._worker",
    "perdure.cli",
    "perdure.keeper",
    "perdure.memory",
    "perdure.sync",
    "perdure.testing",
    "perdure._durable.attempt.blocking.blocking_calls",
    "perdure._durable.lifecycle.app_run",
    "perdure._durable.lifecycle.lines.task_fork",
    "perdure._durable.effects.uncertain_effects",
    "perdure._durable.progress.loops",
    "perdure._durable.models.model_decorator",
    "perdure._durable.pauses.reasons",
    "perdure._durable.streams.stream_reader",
    "perdure._durable.automation.reducer",
    "perdure._durable.automation.schedules",
    "perdure._durable.lifecycle.task_start",
    "perdure._durable.streams.streamed_calls",
    "perdure._durable.databases.transactions",
    "perdure._durable.automation.triggers",
    "perdure._durable.inspect.where_report",
    "perdure._tasks.upkeep.audit",
    "perdure._tasks.pauses.checks",
    "perdure._tasks.upkeep.doctor",
    "perdure._tasks.pauses.due_pauses",
    "perdure._tasks.upkeep.gc",
    "perdure._tasks.values.handlers",
    "perdure._tasks.values.memory_values",
    "perdure._tasks.upkeep.transfer",
    "perdure._tasks.upkeep.rotation",
}


def loaded_by(code: str) -> set[str]:
    told = f"{code}\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", told], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.req("R151")
def test_the_first_line_of_a_program_loads_only_what_a_function_is_made_with() -> None:
    loaded = loaded_by(FIRST_LINE)
    assert loaded & (NOT_OF_OTHERS | NOT_OF_OURS) == set()
    assert "perdure._durable.declare.functions" in loaded


def test_naming_the_package_loads_nothing_of_it_but_its_door() -> None:
    assert {name for name in loaded_by("import perdure") if name.startswith("perdure")} == {
        "perdure",
        "perdure._ground",
        "perdure._ground.lazy_door",
    }


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
    few = {
        "automation.schedules",
        "automation.triggers",
        "databases.transactions",
        "effects.uncertain_effects",
        "models.model_decorator",
        "pauses.reasons",
        "progress.loops",
        "streams.stream_reader",
        "streams.streamed_calls",
    }
    unused = {
        "perdure._runtime",
        "perdure._tasks.pauses.checks",
        "perdure._tasks.pauses.due_pauses",
        "perdure._worker",
        "random",
    }
    loaded = loaded_by(code)
    assert loaded & {*unused, *(f"perdure._durable.{name}" for name in few)} == set()
    assert "perdure._durable.lifecycle.app_run" in loaded


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


def test_a_public_module_loads_nothing_before_a_name_of_it_is_used() -> None:
    code = "from perdure import automation, effects, models, pause, runtime, types"
    private = {name for name in loaded_by(code) if name.startswith("perdure._")}
    assert private == {"perdure._ground", "perdure._ground.lazy_door"}


# ── names that moved ─────────────────────────────────────────────────────────────────────────────

MOVED_NAMES = [(module, name) for module, names in MOVED.items() for name in names]


@pytest.mark.parametrize("package", ["perdure", "perdure.sync"])
@pytest.mark.parametrize("module, name", MOVED_NAMES, ids=[name for _, name in MOVED_NAMES])
def test_importing_a_name_that_moved_says_where_it_is_now(package: str, module: str, name: str) -> None:
    told = f"write `from {package}.{module} import {name}`"
    with pytest.raises(ImportError, match=re.escape(told)):
        exec(f"from {package} import {name}")
    exec(f"from {package}.{module} import {name}")


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'perdure' has no attribute 'Aproval'"):
        perdure.Aproval  # noqa: B018


def test_the_root_shows_sixteen_names_and_the_public_modules() -> None:
    shown = {name for name in dir(perdure) if not ismodule(getattr(perdure, name))}
    assert shown == {
        "Perdure", "Retry", "Secret", "call", "carry_over", "current", "durable", "effect", "idempotency_key",
        "model_call", "patched", "span", "step", "stream", "timeout", "transaction",
    }  # fmt: skip
    assert not [name for name in dir(perdure) if name.startswith("_")]


# ── doors that load a name when it is used ───────────────────────────────────────────────────────


# Strands asks for other versions of what other frameworks need, so its adapter is tested in an environment of its own
# (tests/integrations/strands), whose programs import these names.
ELSEWHERE = {"perdure.integrations.strands"}
DOORS = sorted({module_name(door) for door in doors()} - ELSEWHERE)


@pytest.mark.parametrize("name", DOORS)
def test_each_name_of_a_door_leads_somewhere(name: str) -> None:
    names: list[str] = import_module(name).__all__
    found = __import__(name, fromlist=names)  # as `from … import` does: a module is imported
    assert [name for name in names if not hasattr(found, name)] == []
