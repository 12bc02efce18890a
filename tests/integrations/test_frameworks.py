"""Each adapter is tried with the framework that is installed, loads it late, and uses its public names only."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.integrations.crash_kit import table
from tests.torture import frameworks

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "src/perdure/integrations").glob("*/__init__.py"))
NAMES = [folder.name for folder in FOLDERS]


def requirements(adapter: str) -> list[Requirement]:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [Requirement(text) for text in extras[adapter.replace("_", "-")]]


def is_installed(adapter: str) -> bool:
    return all(any(metadata.distributions(name=one.name)) for one in requirements(adapter))


HERE = [name for name in NAMES if is_installed(name)]


def test_a_framework_that_is_not_installed_has_an_environment_of_its_own() -> None:
    assert set(NAMES) - set(HERE) <= set(frameworks.APART)


@pytest.mark.parametrize("adapter", HERE)
def test_the_installed_framework_is_in_the_range_that_was_tested(adapter: str) -> None:
    """A new minor or major version of a framework is tried by a person before the range is widened."""
    for one in requirements(adapter):
        assert any(part.operator in ("<", "<=", "~=", "==") for part in one.specifier), f"{one} has no upper end"
        assert metadata.version(one.name) in one.specifier


def test_the_guide_has_the_table_of_what_each_agent_is_put_through() -> None:
    assert "\n".join(table()) in (ROOT / "docs/guide/adapters.md").read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_an_adapter_imports_public_names_only(folder: Path) -> None:
    private = []
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("perdure"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [part for alias in node.names for part in alias.name.split(".")]
            private += [f"{path.name}: {name}" for name in names if name.startswith("_") and not name.startswith("__")]
    assert private == []


@pytest.mark.req("R151")
def test_the_doors_of_the_adapters_load_no_framework() -> None:
    tops = sorted({file.parts[0] for name in HERE for one in requirements(name) for file in _modules(one.name)})
    program = f"import sys\nfor name in {NAMES}: __import__('perdure.integrations.' + name)\n"
    program += f"print([name for name in {tops} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert tops and done.stdout.strip() == "[]"
    assert all(importlib.import_module(f"perdure.integrations.{name}").__doc__ for name in NAMES)


def _modules(package: str) -> list[Path]:
    return [Path(str(file)) for file in metadata.files(package) or () if str(file).endswith("/__init__.py")]
