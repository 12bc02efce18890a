"""Write the names of a workspace for the object store, and check that a name stays inside a folder. Pure."""

from __future__ import annotations

import re

from perdure._runtime.workspace.folder_walk import REPOSITORY
from perdure._runtime.workspace.sealer import Sealer

# git takes no folder called .git inside a tree, so those are stored under another name.
_SHIELDED = re.compile(rb"\.git%*", re.IGNORECASE)


def stored(path: bytes, sealer: Sealer | None) -> bytes:
    return b"files/" + (sealer.path(path) if sealer else shield(path))


def unstored(name: bytes, sealer: Sealer | None) -> bytes:
    path = name.removeprefix(b"files/")
    return sealer.open_path(path) if sealer else unshield(path)


def shield(path: bytes) -> bytes:
    """A path as it is stored: parts called .git get another name."""
    if REPOSITORY not in path.lower():
        return path
    return b"/".join(part + b"%" if _SHIELDED.fullmatch(part) else part for part in path.split(b"/"))


def unshield(path: bytes) -> bytes:
    if REPOSITORY not in path.lower():
        return path
    return b"/".join(part.removesuffix(b"%") if _SHIELDED.fullmatch(part) else part for part in path.split(b"/"))


def is_inside(path: bytes) -> bool:
    """True if a path stays in the folder it is put into."""
    parts = path.split(b"/")
    return bool(path) and b"\0" not in path and not any(part in (b"", b".", b"..") for part in parts)


def quoted(path: bytes) -> bytes:
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
