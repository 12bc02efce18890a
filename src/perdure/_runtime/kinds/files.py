"""An open file and how far it was read or written.

What was read must still be what stands there, or the file is not the same and the restore is refused. What was
written is cut back to what the checkpoint knows: a torn tail goes, and appending goes on after the last whole write.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path
from typing import Any

from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType
from perdure.errors import Incompatible

# Of larger files the first and last of this many bytes are compared, with the length.
_SAMPLE = 64 * 1024 * 1024


class FileType(UnitType):
    """A Python file object, in any mode."""

    kind = "file_position"

    async def capture(self, live: Any, place: Place) -> Any:
        return await Call(lambda: _capture(live))

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        problem = await Call(lambda: _problem(recipe))
        if problem:
            raise Incompatible("", [(f"file {recipe['path']}", problem)])
        tail = os.stat(recipe["path"]).st_size - recipe["length"]
        if recipe["writes"] and tail > 0:
            return Verdict("rebuilt", "opened anew", differs=(f"{tail} bytes after the checkpoint are cut off",))
        return Verdict("rebuilt", f"opened anew at byte {recipe['position']}")

    async def restore(self, recipe: Any, place: Place) -> Any:
        place.context.need("write" if recipe["writes"] else "read", f"opening {recipe['path']}")
        return await Call(lambda: _Reopened(recipe))

    async def rollback(self, live: Any, place: Place) -> None:
        await Call(live.give_back)

    async def commit(self, live: Any, place: Place) -> None:
        live.tail = b""

    async def close(self, live: Any) -> None:
        live.close()


def _capture(file: Any) -> dict[str, Any]:
    writes = file.writable()
    if writes:
        file.flush()
    status = os.fstat(file.fileno())
    position = file.tell()
    length = status.st_size if writes else min(position, status.st_size)
    if isinstance(file, io.TextIOBase) and not writes:
        length = status.st_size  # a text position is not a byte offset
    return {
        "path": os.path.abspath(file.name),
        "mode": file.mode,
        "encoding": getattr(file, "encoding", None),
        "position": position,
        "writes": writes,
        "length": length,
        "digest": _digest(os.path.abspath(file.name), length),
        "permissions": stat.S_IMODE(status.st_mode),
    }


def _digest(path: str, length: int) -> str:
    digest = hashlib.sha256(str(length).encode())
    with open(path, "rb") as file:
        if length <= 2 * _SAMPLE:
            _add(digest, file, length)
        else:
            _add(digest, file, _SAMPLE)
            file.seek(length - _SAMPLE)
            _add(digest, file, _SAMPLE)
    return digest.hexdigest()


def _add(digest: Any, file: Any, length: int) -> None:
    while length > 0 and (part := file.read(min(length, 1 << 20))):
        digest.update(part)
        length -= len(part)


def _problem(recipe: Any) -> str:
    try:
        size = os.stat(recipe["path"]).st_size
        if size < recipe["length"]:
            return f"it has {size} bytes; at the checkpoint it had {recipe['length']}"
        if _digest(recipe["path"], recipe["length"]) != recipe["digest"]:
            return "it is another file than at the checkpoint"
    except OSError as error:
        return str(error.strerror)
    return ""


class _Reopened:
    """A file that was opened again; used like the file itself. What was cut off stays at hand until all stands."""

    def __init__(self, recipe: Any) -> None:
        # Never wider: the mode it had, without making or emptying the file.
        mode = recipe["mode"].replace("w", "r+").replace("x", "r+").replace("++", "+")
        if "a" in mode and "+" not in mode and "b" not in mode:
            mode = "a"
        path = Path(recipe["path"])
        self._path, self._length = path, recipe["length"]
        self.tail = b""
        if recipe["writes"]:
            with path.open("rb") as file:
                file.seek(self._length)
                self.tail = file.read()
        self.file = path.open(mode, encoding=recipe["encoding"] if "b" not in mode else None)
        if recipe["writes"] and self.tail:
            os.truncate(path, self._length)
        if "a" not in mode:
            self.file.seek(recipe["position"])

    def give_back(self) -> None:
        self.file.close()
        if self.tail:
            with self._path.open("r+b") as file:
                file.seek(self._length)
                file.write(self.tail)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Any:
        return self.file.__enter__()

    def __exit__(self, *what: Any) -> Any:
        return self.file.__exit__(*what)

    def __iter__(self) -> Any:
        return iter(self.file)
