"""The file a task travels in: a header, sections, and a seal over all of it.

    "perdure bundle 1\\n" · length of header (4) · header · sections … · seal (32)

With a key the sections are sealed by it, and the seal is an HMAC that only its holders can make: a bundle that was
altered is refused. Without one the seal is a plain SHA-256: it shows damage, not forgery, and a reader is told so.
The header says nothing of what the task did. Reading runs no code and believes no length before it is checked.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from perdure._ground import envelope
from perdure._ground.crypto import KeyRing
from perdure.errors import BundleRefused, RecordDamaged

FORMAT = 1
_MAGIC = b"perdure bundle "
_SEAL = 32
_MOST_HEADER = 16 * 1024 * 1024
# Large sections travel in parts of this size, so that none has to be in memory as a whole.
PART = 8 * 1024 * 1024


class Section(msgspec.Struct, array_like=True, frozen=True):
    name: str
    size: int
    digest: bytes


class Header(msgspec.Struct, frozen=True):
    """What can be known of a bundle without its key."""

    task_id: str
    uid: str
    namespace: str
    host: str
    home: str
    made_at: int
    perdure: str
    moved: bool  # the task has ended where it came from
    key: str = ""  # the id of the key it is sealed and signed with
    cuts: dict[str, str] = {}  # workspace cuts and their commits
    roots: list[str] = []
    sections: list[Section] = []

    @property
    def is_signed(self) -> bool:
        return bool(self.key)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def write(path: Path, header: Header, sections: Sequence[tuple[str, bytes]], pack: IO[bytes], ring: KeyRing) -> Header:
    """Write a bundle: `sections` by name, then `pack` in parts. The file is there when it is whole and synced."""
    key = ring.current
    fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
    bodies = fresh.with_suffix(".body")
    try:
        with bodies.open("wb") as out:
            told = [_add(out, name, body, header.uid, ring) for name, body in [*sections, *_parts(pack)]]
        whole = msgspec.structs.replace(header, key=key.id if key else "", sections=told)
        head = msgspec.msgpack.encode(whole)
        with bodies.open("rb") as body, _private(fresh) as out:
            _seal_all(out, _MAGIC + b"%d\n" % FORMAT + len(head).to_bytes(4) + head, body, ring)
        fresh.replace(path)
    finally:
        bodies.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)
    return whole


def _add(out: IO[bytes], name: str, body: bytes, uid: str, ring: KeyRing) -> Section:
    sealed = envelope.seal(body, kind=f"bundle {name}", bound_to=uid, ring=ring)
    out.write(sealed)
    return Section(name, len(sealed), hashlib.sha256(sealed).digest())


def _parts(pack: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    number = 0
    while part := pack.read(PART):
        yield f"workspace {number}", part
        number += 1


def _private(path: Path) -> IO[bytes]:
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))


def _seal_all(out: IO[bytes], head: bytes, body: IO[bytes], ring: KeyRing) -> None:
    seal = _sealer(ring, ring.current.id if ring.current else "")
    for part in (head, *iter(lambda: body.read(1 << 20), b"")):
        seal.update(part)
        out.write(part)
    out.write(seal.digest())
    out.flush()
    os.fsync(out.fileno())


def _sealer(ring: KeyRing, key_id: str) -> hmac.HMAC | hashlib._Hash:
    if not key_id:
        return hashlib.sha256(b"perdure bundle")
    return hmac.new(ring.get(key_id).secret, b"perdure bundle", hashlib.sha256)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


class Bundle:
    """A bundle whose seal and sections are all as they were written."""

    def __init__(self, path: Path, ring: KeyRing) -> None:
        """
        Raises:
            BundleRefused: it is no bundle, cut off, altered, or of a newer perdure.
            KeyMissing: it is sealed with a key that is not here.
        """
        self.path, self._ring = path, ring
        self._file: IO[bytes] = _opened(path)
        try:
            self.header, self._starts_at = self._read_header()
            self._check_seal()
            self._places = self._check_sections()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def section(self, name: str) -> bytes:
        """A section's contents.

        Raises:
            BundleRefused: there is none, or it cannot be opened.
        """
        if name not in self._places:
            raise self._refused(f"it has no section {name!r}")
        at, size = self._places[name]
        self._file.seek(at)
        try:
            return envelope.unseal(
                self._file.read(size), kind=f"bundle {name}", bound_to=self.header.uid, ring=self._ring
            )
        except RecordDamaged as error:
            raise self._refused(error.problem) from None

    def copy_pack(self, out: IO[bytes]) -> bool:
        """Write the workspace's objects; False if there are none."""
        names = [section.name for section in self.header.sections if section.name.startswith("workspace ")]
        for name in names:
            out.write(self.section(name))
        return bool(names)

    def _read_header(self) -> tuple[Header, int]:
        first = self._file.readline(64)
        number = first.removeprefix(_MAGIC).strip()
        if not first.startswith(_MAGIC) or not number.isdigit():
            raise self._refused("it is no bundle of perdure", do="choose the file that `perdure export` made")
        if int(number) > FORMAT:
            raise self._refused(f"a newer perdure made it (format {int(number)})", do="update perdure here")
        length = int.from_bytes(self._file.read(4))
        if length > _MOST_HEADER:
            raise self._refused("its header has no possible length")
        head = self._file.read(length)
        try:
            return msgspec.msgpack.decode(head, type=Header), self._file.tell()
        except (msgspec.MsgspecError, RecursionError):
            raise self._refused("its header cannot be read: it is cut off or altered") from None

    def _check_seal(self) -> None:
        total = os.fstat(self._file.fileno()).st_size
        if total != self._starts_at + sum(section.size for section in self.header.sections) + _SEAL:
            raise self._refused("its length is not what its header says: it is cut off, or something was added")
        seal = _sealer(self._ring, self.header.key)
        self._file.seek(0)
        left = total - _SEAL
        while left and (part := self._file.read(min(left, 1 << 20))):
            seal.update(part)
            left -= len(part)
        if not hmac.compare_digest(seal.digest(), self._file.read(_SEAL)):
            what = "somebody altered it, or it is damaged" if self.header.is_signed else "it is damaged"
            raise self._refused(f"its seal does not fit: {what}")

    def _check_sections(self) -> dict[str, tuple[int, int]]:
        places: dict[str, tuple[int, int]] = {}
        at = self._starts_at
        for section in self.header.sections:
            self._file.seek(at)
            if section.name in places or hashlib.sha256(self._file.read(section.size)).digest() != section.digest:
                raise self._refused(f"section {section.name!r} is damaged")
            places[section.name] = (at, section.size)
            at += section.size
        return places

    def _refused(self, problem: str, *, do: str = "export it again where the task came from") -> BundleRefused:
        return BundleRefused(str(self.path), problem, do=do)


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise BundleRefused(str(path), f"it cannot be read: {error.strerror}", do="name a file that exists") from None
