"""Every block of Python on every page runs, and every command on a page exists with the options it is shown with."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from perdure.cli.base.command import root
from tests.docs.pages import PAGES, ROOT, blocks_of, name_of
from tests.docs.run_page import commands_of
from tests.runtime.kit import Place

COMMANDS = {"console", "sh"}
WITH_CODE = [page for page in PAGES if any(b.language in {"python", *COMMANDS} for b in blocks_of(page))]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A reader's folder, with a store of its own; what its programs left running ends with the test."""
    (tmp_path / ".perdure").mkdir()
    place = Place(tmp_path / ".perdure" / "perdure.db")
    try:
        yield tmp_path
    finally:
        place.clear()


def run_page(page: Path, folder: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_page", str(page)],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, folder: Path) -> None:
    run_page(page, folder)


def test_the_commands_of_the_postgresql_page_find_a_healthy_store(postgres_url: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / "guide" / "postgresql.md"
    block = next(block for block in blocks_of(page) if block.language == "console")
    address = next(word for word in block.text.split() if word.startswith("PERDURE_URL=")).partition("=")[2]
    copy = tmp_path / page.name
    given = f"<!-- run\nperdure --store {shlex.quote(postgres_url)} open first\n -->\n"
    shown = block.text.replace(address, shlex.quote(postgres_url))
    copy.write_text(f"{given}```console\n{shown}```\n", encoding="utf-8")
    run_page(copy, tmp_path)


def test_every_block_of_commands_is_run_and_data_can_be_read() -> None:
    left = []
    for page in PAGES:
        for block in blocks_of(page):
            place = f"{name_of(page)}:{block.line}"
            if block.language in COMMANDS:
                left += [] if block.word == "run" else [f"{place}: nothing runs it"]
            elif block.language == "json":
                json.loads(block.text)
            elif block.language == "yaml":
                yaml.safe_load(block.text)
            elif block.language == "text":
                is_command = re.search(r"^[$#]? ?(perdure [a-z]|pip |python |systemctl )", block.text, re.MULTILINE)
                left += [f"{place}: commands belong into a console block"] if is_command else []
            elif block.language != "python":
                left.append(f"{place}: nothing knows how to try {block.language}")
    assert left == []


def test_a_block_that_another_test_runs_names_a_test_that_reads_its_page() -> None:
    for page in PAGES:
        for tester in {block.tester for block in blocks_of(page)} - {""}:
            text = (ROOT / tester).read_text(encoding="utf-8")
            assert page.stem in text, f"{tester} does not read {name_of(page)}"


def test_every_command_on_a_page_takes_the_options_it_is_shown_with() -> None:
    wrong = []
    for page in PAGES:
        for block in blocks_of(page):
            if block.language != "console":
                continue
            for command, _ in commands_of(block.text):
                wrong += [f"{name_of(page)}: {command}: {trouble}" for trouble in troubles_of(command)]
    assert wrong == []


def troubles_of(command: str) -> list[str]:
    """What perdure's own parser says about a command line, without running it."""
    found = []
    for words in simple_commands(command):
        if words[:1] != ["perdure"] or "…" in words:
            continue
        given = words[1:]
        if "--" in given:
            given = given[: given.index("--") + 2]
        context = click.Context(root, info_name="perdure")
        try:
            group: click.Command = root
            while isinstance(group, click.Group) and given and not given[0].startswith("-"):
                name, found_command, given = group.resolve_command(context, given)
                assert found_command is not None
                group, context = found_command, click.Context(found_command, info_name=name, parent=context)
            group.make_parser(context).parse_args(list(given))
        except click.UsageError as error:
            found.append(error.format_message())
    return found


def simple_commands(line: str) -> list[list[str]]:
    """The words of each command of a line of shell, without what redirects it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    words = iter(lexer)
    for word in words:
        if word in {">", "<", ">>"}:
            next(words)
        elif set(word) <= set("&|;()"):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands
