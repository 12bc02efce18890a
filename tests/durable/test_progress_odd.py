"""Loops among odd things: a cursor of the step's own, file names that are no text, encodings of more bytes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, loops, progress, step
from perdure.errors import InvalidInput


async def in_two_tries(url: str, body: Callable[[list[Any]], Any]) -> list[Any]:
    """What a step's body noted down that fails once and is tried again."""
    noted: list[Any] = []

    @step(name="work", retry=Retry(2, wait=timedelta(0)))
    async def work() -> None:
        await body(noted)

    @durable
    async def run() -> None:
        await work()

    async with Perdure(url) as app:
        await app.run("t", run)
    return noted


@pytest.mark.req("R60")
@pytest.mark.parametrize("cursor", [lambda item: item * 10, lambda item: {"row": item}, lambda item: [item]])
async def test_a_step_may_have_a_cursor_of_its_own_beside_its_loops(
    quick_url: str, cursor: Callable[[int], Any]
) -> None:
    async def body(noted: list[Any]) -> None:
        async for item in loops.each(range(5)):
            noted.append((item, progress.cursor))
            await progress.mark(cursor=cursor(item))
            if len(noted) == 3:
                raise ConnectionError

    items = [0, 1, 2, 2, 3, 4]
    assert await in_two_tries(quick_url, body) == list(
        zip(items, [None, *(cursor(item) for item in items[:-1])], strict=True)
    )


@pytest.mark.req("R60")
async def test_files_whose_names_are_no_text_are_gone_over_like_others(quick_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir()
    for name in (b"a.txt", b"caf\xe9.txt", b"z.txt"):
        (folder / os.fsdecode(name)).touch()

    async def body(noted: list[Any]) -> None:
        async for path in loops.files(folder):
            noted.append(os.fsencode(path.name))
            if len(noted) == 3:
                raise ConnectionError

    assert await in_two_tries(quick_url, body) == [b"a.txt", b"caf\xe9.txt", b"z.txt", b"z.txt"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "cp037"])
async def test_an_encoding_whose_lines_no_byte_ends_is_refused(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "import.csv"
    path.write_text("one\ntwo\n", encoding)
    with pytest.raises(InvalidInput, match="do not end with the byte 10"):
        await _all(loops.lines(path, encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "shift_jis", "gb18030", "big5"])
async def test_other_encodings_are_read_line_by_line(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "import.csv"
    path.write_text("one\n\r\ntwo", encoding, newline="")
    assert await _all(loops.lines(path, encoding=encoding)) == ["one\n", "\r\n", "two"]


async def _all(found: AsyncIterator[str]) -> list[str]:
    return [item async for item in found]
