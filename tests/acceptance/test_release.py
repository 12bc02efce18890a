"""What is released: a wheel with the package and nothing else, and a source archive that all of it can be made from."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import apsw
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import perdure
from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import make_sbom

SOURCE = ROOT / "src" / "perdure"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def _sources() -> set[str]:
    found = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"perdure/{path.relative_to(SOURCE).as_posix()}" for path in found}


def test_the_wheel_holds_every_file_of_the_package_and_no_other(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        info = {name for name in names if name.startswith(f"perdure-{perdure.__version__}.dist-info/")}
        entry_points = wheel.read(next(name for name in info if name.endswith("entry_points.txt"))).decode()
    assert names - info == _sources()
    assert {"perdure/py.typed", "perdure/_store/sqlite/schema.sql"} <= names
    assert "perdure = perdure.cli:main" in entry_points
    assert any(name.endswith("/LICENSE") for name in info)


def test_the_source_archive_holds_what_tests_docs_and_benchmarks_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in _sources()} <= names
    for needed in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "tests/conftest.py"):
        assert needed in names
    for folder in ("tools/", "docs/guide/", "examples/", "benchmarks/", "requirements/"):
        assert any(name.startswith(folder) for name in names), folder
    made = [name for name in names if re.search(r"(^|/)(\.venv|build|dist|__pycache__|\.perdure)/", name)]
    assert not made


def _installed(name: str, extras: frozenset[str], found: dict[str, str]) -> dict[str, str]:
    """What is installed for a package and its extras here, by name, as their own metadata say."""
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            key = canonicalize_name(wanted.name)
            is_new = key not in found
            found[key] = metadata.version(wanted.name)
            if is_new or wanted.extras:
                _installed(wanted.name, frozenset(wanted.extras), found)
    return found


def test_the_bill_of_materials_has_all_that_an_installation_brings_and_the_scripts_of_the_wheel() -> None:
    made = make_sbom.make()
    packages = {one["name"]: one for one in made["components"] if one["purl"].startswith("pkg:pypi/")}
    there = _installed("perdure", frozenset({"all"}), {})
    there.pop("perdure", None)  # asked for again by its own extra
    assert {"apsw", "langgraph"} <= there.keys()
    assert there.items() <= {name: one["version"] for name, one in packages.items()}.items()
    assert not {"pytest", "ruff", "sphinx", "hatchling"} & packages.keys()
    assert all(one["externalReferences"] for one in packages.values())

    scripts = {one["purl"] for one in made["components"]} - {one["purl"] for one in packages.values()}
    vendored = (SOURCE / "dashboard" / "assets" / "vendor" / "VENDOR.toml").read_text(encoding="utf-8")
    assert len(scripts) == vendored.count("[[package]]") and any(one.startswith("pkg:npm/preact@") for one in scripts)

    known = {one["bom-ref"] for one in made["components"]} | {made["metadata"]["component"]["bom-ref"]}
    assert {one["ref"] for one in made["dependencies"]} | {
        other for one in made["dependencies"] for other in one["dependsOn"]
    } <= known


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A virtual environment with what perdure needs, and without perdure."""
    folder = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_what_is_released_runs_the_demo_where_the_source_is_not(
    kind: str, built: Path, fresh: Path, tmp_path: Path
) -> None:
    """Steps of docs/releasing.md, in a fresh environment and an empty folder."""
    python = ["--python", str(fresh / "bin" / "python")]
    options = ["-q", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    (archive,) = built.glob(kind)
    subprocess.run([sys.executable, "-m", "pip", *python, "install", *options, str(archive)], check=True)
    folder = tmp_path / "empty"
    folder.mkdir()
    env = {"HOME": str(folder), "PATH": f"{fresh / 'bin'}:{os.defpath}"}

    def told(*words: str) -> str:
        done = subprocess.run(
            [fresh / "bin" / words[0], *words[1:]], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert Path(told("python", "-c", "import perdure; print(perdure.__file__)")).is_relative_to(fresh)
    assert told("perdure", "--version").startswith(f"perdure {perdure.__version__} ")
    assert told("perdure", "bench", "--help")
    if kind == "*.whl":  # the source archive makes the same wheel
        table = told("perdure", "demo").partition("What came back")[2].splitlines()[2:]
        assert len(table) == 10 and all(line.endswith("yes") for line in table)


def test_the_version_names_the_engines_too() -> None:
    told = subprocess.run([sys.executable, "-m", "perdure", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith(f"perdure {perdure.__version__} (SQLite {apsw.sqlite_lib_version()} of apsw ")
    assert "PostgreSQL by psycopg 3." in told.stdout and told.stdout.endswith(")\n")
