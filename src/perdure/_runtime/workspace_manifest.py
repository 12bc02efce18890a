"""What git does not know of a workspace: modes, times, empty folders, and what was left out.

Pure: records and their bytes. A manifest goes with its cut and may come from another machine, so it is read
strictly and its names are checked before anything is done with them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from perdure._runtime.workspace_names import is_inside
from perdure.errors import CutFailed

FORMAT = 1


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    path: bytes
    kind: Literal["file", "link", "folder"]
    mode: int
    mtime_ns: int
    size: int


class Manifest(msgspec.Struct, frozen=True):
    """One cut's manifest; `head` is the commit the user's repository stood at, if there is one."""

    root: str
    entries: Sequence[Entry]
    ignored: Sequence[bytes] = ()  # what git ignored then: a restore leaves it alone
    left_out: Sequence[tuple[bytes, str]] = ()
    with_ignored: bool = False
    with_repositories: bool = False
    head: str | None = None
    format: int = FORMAT


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Manifest)


def encode(manifest: Manifest) -> bytes:
    return _encoder.encode(manifest)


def decode(data: bytes, cut: str) -> Manifest:
    """The manifest of a cut.

    Raises:
        CutFailed: it is damaged, newer, or holds names that lead out of the folder.
    """
    try:
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CutFailed(f"cut {cut}", f"its manifest cannot be read: {error}", do="use an earlier cut") from None
    if found.format > FORMAT:
        raise CutFailed(f"cut {cut}", f"it was made by a newer perdure (format {found.format})", do="update perdure")
    return found


def check(manifest: Manifest, files: Mapping[bytes, tuple[str, str]], cut: str) -> None:
    """Refuse a cut whose names are not safe to put on disk, or whose two halves do not fit together.

    Raises:
        CutFailed: nothing was touched.
    """
    kinds: dict[bytes, str] = {}
    for entry in manifest.entries:
        if entry.path in kinds or not is_inside(entry.path) or entry.mode & ~0o7777:
            raise _unsafe(cut, entry.path)
        kinds[entry.path] = entry.kind
    for path, kind in kinds.items():
        parent = path.rpartition(b"/")[0]
        if parent and kinds.get(parent) != "folder":
            raise _unsafe(cut, path)
        if (kind != "folder") != (path in files) or (kind == "link" and files[path][0] != "120000"):
            raise _unsafe(cut, path)
    if len(files) != sum(kind != "folder" for kind in kinds.values()):
        raise CutFailed(f"cut {cut}", "its files and its manifest do not fit together", do="use an earlier cut")


def leads_out(link: bytes, target: bytes) -> bool:
    """Whether a link in the workspace points out of it."""
    if target.startswith(b"/"):
        return True
    place = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return place == b".." or place.startswith(b"../")


def _unsafe(cut: str, path: bytes) -> CutFailed:
    return CutFailed(f"cut {cut}", f"it holds the name {os.fsdecode(path)!r}, which is not safe", do="do not use it")
