"""What an attacker makes: bundles whose checksum fits and whose contents are theirs, and packs that grow."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.bundles import bundle_file
from perdure._runtime.bundles.bundle_file import Bundle, Header
from perdure._runtime.bundles.task_bundle import export
from perdure._runtime.context import context as contexts
from perdure._runtime.restore.continuity import Continuity

Rows = dict[str, list[dict[str, Any]]]


def honest(folder: Path, *, workspace: Callable[[Path], None] | None = None) -> Path:
    """A bundle of a task that has moved away, by a store without a key."""
    return drive(_honest(folder, workspace))


async def _honest(folder: Path, workspace: Callable[[Path], None] | None) -> Path:
    bundle = folder / "task.perdure"
    async with Perdure(f"sqlite://{folder}/evil/p.db") as app:
        task = await app.tasks.open("deploy", state={"n": 1})
        await task.checkpoint({"n": 2})
        if workspace is not None:
            root = folder / "evil-work"
            root.mkdir()
            workspace(root)
            rt = Continuity(app._store, task.id, task.uid)
            rt.workspace(root)
            await rt.save()
        await export(app.tasks, "deploy", bundle, move=True)
    contexts.forget_contexts()
    return bundle


def forge(
    bundle: Path, change: Callable[[Rows, dict[str, Any]], Any] | None = None, *, pack: bytes | None = None
) -> None:
    """Rewrite an unsigned bundle; `change` gets its rows and its header as dicts, and may return other rows."""
    with Bundle(bundle, KeyRing()) as found:
        rows: Any = msgspec.msgpack.decode(found.section("rows"))
        header = msgspec.to_builtins(found.header, builtin_types=(bytes,))
        kept = io.BytesIO()
        found.copy_pack(kept)
    del header["sections"]
    other = change(rows, header) if change is not None else None
    body = other if isinstance(other, bytes) else msgspec.msgpack.encode(other if other is not None else rows)
    told = Header(**header)
    bundle_file.write(bundle, told, [("rows", body)], io.BytesIO(kept.getvalue() if pack is None else pack), KeyRing())


# ── packs ────────────────────────────────────────────────────────────────────────────────────────


def _head(kind: int, size: int) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(first | 128)
        first, size = size & 127, size >> 7
    return bytes((*out, first))


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def growing_pack(size: int) -> bytes:
    """A pack of a few kilobytes: one content, and a difference that copies it again and again, to this size."""
    base = bytes(0xFFFF)
    name = hashlib.sha256(b"blob %d\0" % len(base) + base).digest()
    copies = size // len(base)
    delta = _number(len(base)) + _number(copies * len(base)) + b"\xb0\xff\xff" * copies
    objects = _head(3, len(base)) + zlib.compress(base) + _head(7, len(delta)) + name + zlib.compress(delta, 9)
    pack = b"PACK" + (2).to_bytes(4) + (2).to_bytes(4) + objects
    return pack + hashlib.sha256(pack).digest()
