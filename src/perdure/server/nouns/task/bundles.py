"""Bundles: a task as a file to download, and a file that becomes a task."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perdure import __version__
from perdure._runtime import Imported, bring_in, export
from perdure.errors import BundleRefused, InvalidInput
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask, Streamed
from perdure.server.nouns.references import address_of, glance_at
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Nothing, Raw, Route

_CHUNK = 256 * 1024  # bytes
_LARGEST = 4 * 1024**3  # bytes


class Packing(Strict, frozen=True, kw_only=True):
    move: bool = False  # end the task here, so that it goes on in one place only
    workspace: bool = True


class Unpacking(Strict, frozen=True, kw_only=True):
    map: tuple[str, ...] = ()  # OLD=NEW: folder OLD of the other machine is NEW here
    unsigned: bool = False


async def pack(ask: Ask[Nothing, Packing]) -> Streamed:
    _, row = await glance_at(ask)
    if not row.is_current:
        raise InvalidInput(f"another task has the id {row.id!r} now", do="fork it under another id, and export that")
    folder = await asyncio.to_thread(_folder)
    file = folder / "task.perdure"
    how = ask.body
    try:
        done = await aside(
            lambda: export(ask.app.tasks, row.id, file, move=how.move, workspace=how.workspace, version=__version__)
        )
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder, True)
        raise
    name = quote(f"{row.id}.perdure", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "Content-Length": str(done.size)}
    return Streamed(_contents(file), headers=headers)


async def _contents(file: Path) -> AsyncIterator[bytes]:
    """The file, which is removed in the end."""
    try:
        with await asyncio.to_thread(file.open, "rb") as source:
            while chunk := await asyncio.to_thread(source.read, _CHUNK):
                yield chunk
    finally:
        await asyncio.to_thread(shutil.rmtree, file.parent, True)


async def unpack(ask: Ask[Unpacking, None]) -> Answer:
    assert ask.content is not None
    paths = dict(_pair(text) for text in ask.query.map)
    folder = await asyncio.to_thread(_folder)
    file = folder / "task.perdure"
    try:
        with await asyncio.to_thread(file.open, "wb") as target:
            async for chunk in ask.content:
                await asyncio.to_thread(target.write, chunk)
        came = await aside(lambda: bring_in(ask.app.tasks, file, paths=paths, unsigned=ask.query.unsigned))
    except BundleRefused as refused:
        raise BundleRefused("the bundle", refused.problem, do=refused.do) from None  # not where it was spooled
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)
    task = await ask.app.tasks.handle(came.task_id)
    return Answer(came, 201, headers={"Location": address_of(task.id, task.uid)})


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="perdure-bundle-"))


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old or not new:
        raise InvalidInput(f"map is {text[:100]!r}", do="write map=OLD=NEW")
    return old, new


_ADMIN: dict[str, Any] = {"once": "must", "statuses": (409,)}
ROUTES = (
    Route(
        method="POST",
        path="/v1/tasks/{task}/export",
        handler=pack,
        does="Download a task as a bundle.",
        scopes=("store:admin", "data:read"),
        body=Packing,
        answers="application/octet-stream",
        streams=True,
        **_ADMIN,
    ),
    Route(
        method="POST",
        path="/v1/import",
        handler=unpack,
        does="Make the task of a bundle one of this store. An unsigned bundle comes in as data only, and paused.",
        scopes=("store:admin",),
        query=Unpacking,
        body=Raw,
        media="application/octet-stream",
        body_limit=_LARGEST,
        answer=Imported,
        status=201,
        **_ADMIN,
    ),
)
