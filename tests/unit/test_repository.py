"""What holds for every file of the repository."""

from __future__ import annotations

import ast
import os
import pwd
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest

from tests.support.requirements import requirement_titles

ROOT = Path(__file__).resolve().parents[2]
LONGEST_MODULE = 530

REGISTRIES = re.compile(
    r"""--(extra-)?index-url | --find-links[ =] | \bpypi\.org/simple | \bfiles\.pythonhosted\.org
    | registry\s*=\s*"https?: | "resolved":\s*"https?:""",
    re.VERBOSE,
)


def tracked(pattern: str = "*") -> list[Path]:
    """Files that are in git or would be added to it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()})


def text_of(file: Path) -> str:
    return file.read_bytes().decode("utf-8", errors="replace")


def named(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


def own_places() -> list[str]:
    """Folders of this machine that mean nothing on another one."""
    common = {Path("/"), Path("/home"), Path("/usr/src"), Path("/var/tmp"), Path(tempfile.gettempdir()), Path("/tmp")}
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return [f"{place}/" for place in (ROOT, ROOT.parent, home) if place not in common]


def locale_dependent(text: str) -> list[int]:
    """Lines that read or write text in the encoding of the machine's locale."""
    found: list[int] = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        mode = ast.unparse(node.args[1]) if len(node.args) > 1 else given.get("mode", "'r'")
        is_opened = name == "fdopen" or (name == "open" and isinstance(called, ast.Name))
        is_text = is_opened and mode.startswith("'") and "b" not in mode
        is_text = is_text or (name == "read_text" and not node.args) or (name == "write_text" and len(node.args) < 2)
        is_text = is_text or given.get("text") == "True" or given.get("universal_newlines") == "True"
        if is_text and "encoding" not in given and None not in given:
            found.append(node.lineno)
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
class TestTrackedFiles:
    def test_no_file_names_a_place_on_this_machine(self) -> None:
        places = re.compile("|".join(rf"(?<![\w.~-]){re.escape(place)}" for place in own_places()))
        assert named([file for file in tracked() if places.search(text_of(file))]) == []

    def test_text_is_read_and_written_as_utf_8_whatever_the_locale(self) -> None:
        sources = {name: file for file in tracked("src/*.py") for name in named([file])}
        found = [f"{name}:{line}" for name, file in sources.items() for line in locale_dependent(text_of(file))]
        assert found == [], 'say encoding="utf-8"'

    def test_no_file_names_a_package_registry(self) -> None:
        assert named([file for file in tracked() if REGISTRIES.search(text_of(file))]) == []

    def test_every_module_says_what_it_is_about(self) -> None:
        silent = [file for file in tracked("*.py") if not ast.get_docstring(ast.parse(text_of(file)))]
        assert named(silent) == []

    def test_no_module_has_outgrown_its_subject(self) -> None:
        # errors.py and rows.py are lists, and _faces.py is generated.
        lists = {ROOT / "src" / "perdure" / name for name in ("errors.py", "_store/rows.py", "sync/_faces.py")}
        modules = [file for file in tracked("src/*.py") if file not in lists]
        long = [file for file in modules if len(text_of(file).splitlines()) > LONGEST_MODULE]
        assert named(long) == []

    def test_no_test_waits_for_time_to_pass(self) -> None:
        # Torture takes real time, and the simulator's loops have a time of their own that is set forward.
        tests = [
            file for file in tracked("tests/*.py") if not {"torture", "simulator"} & {*file.relative_to(ROOT).parts}
        ]
        sleeps = [f"{name}:{line}" for file in tests for name in named([file]) for line in sleeps_in(text_of(file))]
        assert sleeps == [], "move the clock or wait for a signal"

    def test_every_page_is_in_the_index_of_its_folder(self) -> None:
        for index, pages in {
            "docs/index.md": ("tutorial", "guide", "explanation", "reference"),
            "docs/decisions/README.md": ("",),
        }.items():
            told = text_of(ROOT / index)
            folder = (ROOT / index).parent
            files = [file for page in pages for file in (folder / page).glob("*.md") if file != ROOT / index]
            assert [name for name in named(files) if f"]({(ROOT / name).relative_to(folder)})" not in told] == []

    def test_a_decision_is_listed_under_its_own_title(self) -> None:
        folder = ROOT / "docs" / "decisions"
        titles = {file: text_of(file).splitlines()[0] for file in sorted(folder.glob("0*.md"))}
        lines = [f"- [{file.name[:4]}]({file.name}) {title[7:]}" for file, title in titles.items()]
        assert [title for file, title in titles.items() if not title.startswith(f"# {file.name[:4]} ")] == []
        assert [line for line in text_of(folder / "README.md").splitlines() if line.startswith("- [")] == lines

    def test_links_between_pages_lead_somewhere(self) -> None:
        broken = [
            f"{name}: {target}"
            for file in tracked("*.md")
            for name in named([file])
            for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text_of(file))
            if not (file.parent / target).exists()
        ]
        assert broken == []

    def test_contributing_names_every_folder_of_tests(self) -> None:
        told = set(re.findall(r"`tests/(\w+)`", text_of(ROOT / "CONTRIBUTING.md")))
        assert told == {file.relative_to(ROOT).parts[1] for file in tracked("tests/*/*.py")}

    def test_an_sdist_has_every_folder_but_those_of_the_host(self) -> None:
        settings = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["sdist"]
        folders = {f"/{file.relative_to(ROOT).parts[0]}" for file in tracked() if file.parent != ROOT}
        assert folders - {"/.ci", "/.github"} <= set(settings["include"])


def sleeps_in(source: str) -> list[int]:
    """The lines that sleep, other than by sleep(0), which only lets others run, and by a length that a test's world
    deals out: its loop's time stands still (tests/replay/programs.py)."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func) in {"time.sleep", "asyncio.sleep", "anyio.sleep", "sleep"}
        and not re.fullmatch(r"0|world\.get\(\)\.length\(.*\)", ", ".join(map(ast.unparse, call.args)))
    ]


@pytest.mark.parametrize(
    "source, lines",
    [
        ("time.sleep(1)", [1]),
        ("async def f():\n    await asyncio.sleep(0.1)", [2]),
        ("from time import sleep\nsleep(delay)", [2]),
        ("async def f():\n    await asyncio.sleep(0)", []),
        ("async def f():\n    await asyncio.sleep(world.get().length('a'))", []),
    ],
)
def test_a_sleep_is_recognised(source: str, lines: list[int]) -> None:
    assert sleeps_in(source) == lines


def test_requirements_are_numbered_without_a_gap() -> None:
    names = list(requirement_titles())
    assert names == [f"R{number}" for number in range(1, len(names) + 1)]
    assert len(names) == 154


def test_the_walks_in_architecture_name_functions_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named_there = re.findall(r"\b([a-z_/]+\.py):(\w+)", text)
    missing = [
        f"{file}:{name}"
        for file, name in named_there
        if not re.search(rf"def {name}\(", text_of(ROOT / "src" / "perdure" / file))
    ]
    assert len(named_there) > 20
    assert missing == []
