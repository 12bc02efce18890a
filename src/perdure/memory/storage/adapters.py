"""Two adapters without a database: in memory, for development, and files that are replaced whole.

The adapters on SQLite and PostgreSQL are in app_storage.py. kit.py tests those of third parties.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perdure._ground.bridge import Call
from perdure._ground.encoding import codec
from perdure._ground.ids import new_uid
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._tasks import memory_values as memories
from perdure.errors import RecordDamaged
from perdure.memory.storage.adapter import Loaded

_SUFFIX = ".mem"
# File names have at most 255 bytes, and some file systems count them after escaping them again.
_MOST_NAME = 180
_KIND = "memory file"
_LENGTH = 4  # bytes of the length of the key


class InMemoryStorage:
    """Values in this object, for development and tests; lost when the process ends."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[int, bytes]] = {}

    async def get(self, key: str) -> Any | None:
        found = self._values.get(memories.check_key(key))
        return None if found is None else codec.decode(found[1])

    async def set(self, key: str, value: Any) -> None:
        await self.swap(key, value, None)

    async def delete(self, key: str) -> None:
        self._values.pop(memories.check_key(key), None)

    async def list(self, prefix: str) -> Sequence[str]:
        return sorted(key for key in self._values if key.startswith(prefix))

    async def load(self, key: str) -> Loaded | None:
        found = self._values.get(memories.check_key(key))
        return None if found is None else Loaded(codec.decode(found[1]), found[0])

    async def swap(self, key: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        data = codec.encode(value)  # stored as bytes, so that later changes of the caller's object do not change it
        version = self._values.get(memories.check_key(key), (0, b""))[0]
        if seen is not None and seen != version:
            return None
        self._values[key] = (version + 1, data)
        return version + 1


class FileStorage:
    """One file per key in a folder, replaced whole: a reader, or the next process, finds the old value or the new.

    The folder is private to its user. With a key (as for `Perdure(key=)`) the files are sealed.
    """

    def __init__(self, folder: str | Path, *, key: str | None = None) -> None:
        self._folder = Path(folder)
        self._ring = KeyRing.load(key)
        self._mutex = threading.Lock()
        self._numbers = itertools.count(1)
        self._newest: dict[str, int] = {}  # by key: the number of the last write of this process that was carried out

    async def get(self, key: str) -> Any | None:
        path = self._path(memories.check_key(key))
        return await Call(lambda: self._read(path, key))

    async def set(self, key: str, value: Any) -> None:
        path, number = self._path(memories.check_key(key)), next(self._numbers)
        sealed = envelope.seal(codec.encode(value), kind=_KIND, bound_to=key, ring=self._ring)
        data = len(key.encode()).to_bytes(_LENGTH) + key.encode() + sealed
        await Call(lambda: self._write(path, key, data, number))

    async def delete(self, key: str) -> None:
        path, number = self._path(memories.check_key(key)), next(self._numbers)
        await Call(lambda: self._write(path, key, None, number))

    async def list(self, prefix: str) -> Sequence[str]:
        return await Call(lambda: sorted(key for key in self._keys() if key.startswith(prefix)))

    async def set_aside(self, key: str, aside: str) -> int | None:
        """Keep a damaged file as it is, for a person to inspect, under a name that cannot be a key."""
        path = self._path(memories.check_key(key))
        await Call(lambda: path.replace(path.with_suffix(f".damaged-{new_uid(0)}")) if path.exists() else None)
        return 0

    # ── files ───────────────────────────────────────────────────────────────────────────────────

    def _path(self, key: str) -> Path:
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"%{c.encode().hex()}." for c in key)
        if len(name) > _MOST_NAME:
            name = f"{name[:60]}~{hashlib.sha256(key.encode()).hexdigest()}"
        return self._folder / f"{name}{_SUFFIX}"

    def _read(self, path: Path, key: str) -> Any | None:
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        found, sealed = _take_apart(path, data)
        if found != key:
            raise RecordDamaged(f"the file {path.name}", f"it holds the key {found!r}")
        return codec.decode(envelope.unseal(sealed, kind=_KIND, bound_to=key, ring=self._ring))

    def _write(self, path: Path, key: str, data: bytes | None, number: int) -> None:
        """Write one value at a time; a write whose caller gave up does not overwrite a later one."""
        with self._mutex:
            if self._newest.get(key, 0) > number:
                return
            if data is None:
                path.unlink(missing_ok=True)
            else:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(path, data)
            self._newest[key] = number

    def _keys(self) -> Sequence[str]:
        found = []
        for path in self._folder.glob(f"*{_SUFFIX}") if self._folder.is_dir() else ():
            name = path.name.removesuffix(_SUFFIX)
            if "~" not in name:
                found.append(_unescape(name))
            else:  # too long for a file name, so the name is a digest
                found.append(_take_apart(path, path.read_bytes())[0])
        return found


def _take_apart(path: Path, data: bytes) -> tuple[str, bytes]:
    """The key, which stands in clear before the sealed value, and that value."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH])
    try:
        return data[_LENGTH:end].decode(), data[end:]
    except UnicodeDecodeError:
        raise RecordDamaged(f"the file {path.name}", "it names no key") from None


def _unescape(name: str) -> str:
    head, *rest = name.split("%")
    parts = [head]
    for piece in rest:
        code, _, plain = piece.partition(".")
        parts.append(bytes.fromhex(code).decode() + plain)
    return "".join(parts)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers find the old one or the new one. On disk when this returns."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
