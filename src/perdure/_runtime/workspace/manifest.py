"""The facts about a workspace that git does not store: modes, times, empty folders, and paths that were left out.

Pure: records and their bytes. A manifest goes with its cut and may come from another machine, so it is read
strictly and its names are checked before anything is done with them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from perdure._runtime.workspace.names import is_inside
from perdure.errors import CutFailed

FORMAT = 1
_MOST_LINKS = 40  # as many as Linux follows
LONGEST_LINK = 4096


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


def check_links(manifest: Manifest, targets: Mapping[bytes, bytes], cut: str) -> None:
    """Refuse a cut of which a link, followed as the system follows it, leads out of the folder.

    Where a link leads depends on the links on its way: `a/up` that is `..`, then `a/up/../x`. So each one is
    walked through the cut, part by part.

    Raises:
        CutFailed: nothing was touched.
    """
    kinds = {entry.path: entry.kind for entry in manifest.entries}
    for link in targets:
        if _leads_out(link, kinds, targets):
            name = os.fsdecode(link)
            raise CutFailed(f"cut {cut}", f"the link {name!r} points out of it", do="do not use it")


def _leads_out(link: bytes, kinds: Mapping[bytes, str], targets: Mapping[bytes, bytes]) -> bool:
    place = link.split(b"/")[:-1]
    left = [targets[link]]
    for _ in range(_MOST_LINKS):
        if left[-1].startswith(b"/") or b"\0" in left[-1]:
            return True
        parts = b"/".join(reversed(left)).split(b"/")
        left = []
        for number, part in enumerate(parts):
            if part in (b"", b"."):
                continue
            if part != b"..":
                place.append(part)
                if b"/".join(place) in targets:
                    left = [b"/".join(parts[number + 1 :]), targets[b"/".join(place)]]
                    place.pop()
                    break
            # `..` out of something that is not a folder of the cut can lead anywhere: it may be an existing link.
            elif not place or kinds.get(b"/".join(place)) != "folder":
                return True
            else:
                place.pop()
        if not left:
            return False
    return True  # links that lead to each other


def _unsafe(cut: str, path: bytes) -> CutFailed:
    return CutFailed(f"cut {cut}", f"it holds the name {os.fsdecode(path)!r}, which is not safe", do="do not use it")
