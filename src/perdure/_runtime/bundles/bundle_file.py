"""The file a task travels in: a header, sections, and a seal over all of it.

    "perdure bundle 1\\n" · length of header (4) · header · sections … · seal (32)

With a key the sections are sealed by it, and the seal is an HMAC that only its holders can make: a bundle that was
altered is refused. Without one the seal is a plain SHA-256: it shows damage, not forgery, and a reader is told so.
The header says nothing of what the task did.

A bundle is hostile until its seal fits. It is read once, into a private file, with every length checked before it is
believed; nothing in it is opened before that. An unsigned bundle may also not unpack to much more than its size.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Meta

from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure.errors import BundleRefused, RecordDamaged

FORMAT = 1
_MAGIC = b"perdure bundle "
_SEAL = 32
_MOST_HEADER = 1024 * 1024
# Large sections travel in parts of this size, so that none has to be in memory as a whole.
PART = 8 * 1024 * 1024
# What an envelope adds to its contents, at most.
_AROUND = 1024
_READ = 1 << 20
# An unsigned bundle may unpack to this many bytes, and to this many times its own size.
_FREE, _TIMES = 4 * 1024 * 1024, 100

_Uid = Annotated[str, Meta(pattern=r"\A[0-9a-v]{24}\Z")]
_Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Id = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f-\x9f]+\Z")]
_Text = Annotated[str, Meta(max_length=4096, pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]


class Section(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(pattern=r"\A(rows|workspace (0|[1-9][0-9]{0,5}))\Z")]
    size: Annotated[int, Meta(ge=0, le=envelope.MAX_BYTES + _AROUND)]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of a bundle that can be read without its key."""

    task_id: _Id
    uid: _Uid
    namespace: _Id
    host: _Text
    home: _Text
    made_at: Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
    perdure: Annotated[str, Meta(max_length=64, pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]
    moved: bool  # the task has ended where it came from
    # the id of the key it is sealed and signed with
    key: Annotated[str, Meta(pattern=r"\A[a-z0-9-]{0,32}\Z")] = ""
    cuts: Annotated[dict[_Uid, _Hash], Meta(max_length=1000)] = {}  # workspace cuts and their commits
    roots: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=1000)] = []
    sections: list[Section] = []

    @property
    def is_signed(self) -> bool:
        return bool(self.key)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def write(path: Path, header: Header, sections: Sequence[tuple[str, bytes]], pack: IO[bytes], ring: KeyRing) -> Header:
    """Write a bundle: `sections` by name, then `pack` in parts. The file is there when it is whole and synced.

    It is written under a random name and then renamed: a link that has its name is replaced, not
    followed.
    """
    key = ring.current
    folder = path.absolute().parent
    with tempfile.TemporaryFile(dir=folder) as bodies:
        told = [_add(bodies, name, body, header.uid, ring) for name, body in [*sections, *_parts(pack)]]
        whole = msgspec.structs.replace(header, key=key.id if key else "", sections=told)
        head = msgspec.msgpack.encode(whole)
        bodies.seek(0)
        number, fresh = tempfile.mkstemp(prefix=f"{path.name[:100]}.", suffix=".part", dir=folder)
        try:
            with open(number, "wb") as out:
                _seal_all(out, _MAGIC + b"%d\n" % FORMAT + len(head).to_bytes(4) + head, bodies, ring)
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
    return whole


def _add(out: IO[bytes], name: str, body: bytes, uid: str, ring: KeyRing) -> Section:
    sealed = envelope.seal(body, kind=f"bundle {name}", bound_to=uid, ring=ring)
    if len(body) > allowance(len(sealed)):  # or a reader would take it for a trap
        sealed = envelope.seal(body, kind=f"bundle {name}", bound_to=uid, ring=ring, compress=False)
    out.write(sealed)
    return Section(name, len(sealed), hashlib.sha256(sealed).digest())


def _parts(pack: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    number = 0
    while part := pack.read(PART):
        yield f"workspace {number}", part
        number += 1


def _seal_all(out: IO[bytes], head: bytes, body: IO[bytes], ring: KeyRing) -> None:
    seal = _sealer(ring, ring.current.id if ring.current else "")
    for part in (head, *iter(lambda: body.read(_READ), b"")):
        seal.update(part)
        out.write(part)
    out.write(seal.digest())
    out.flush()
    os.fsync(out.fileno())


def _sealer(ring: KeyRing, key_id: str) -> hmac.HMAC | hashlib._Hash:
    if not key_id:
        return hashlib.sha256(b"perdure bundle")
    return hmac.new(ring.get(key_id).secret, b"perdure bundle", hashlib.sha256)


def allowance(size: int) -> int:
    """The number of bytes that an unsigned bundle of this size may unpack to."""
    return _FREE + _TIMES * size


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


class Bundle:
    """A bundle whose seal and sections are all as they were written.

    `is_trusted`: a key that is here has signed it, or the caller says so. Then only what any record may hold bounds
    what it unpacks to.
    """

    def __init__(self, path: Path, ring: KeyRing, *, trust: bool = False) -> None:
        """
        Raises:
            BundleRefused: it is not a bundle, is cut off or altered, or of a newer perdure.
            KeyMissing: it is sealed with a key that is not here.
        """
        self.path, self._ring = path, ring
        with _opened(path) as source:
            self.size = os.fstat(source.fileno()).st_size
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=_beside(path))  # noqa: SIM115 (closed by __exit__)
            try:
                self._take(source)
            except BaseException:
                self._file.close()
                raise
        self.is_trusted = trust or self.header.is_signed

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def allowance(self) -> int:
        """The number of bytes that its records may unpack to in all."""
        return 1 << 62 if self.is_trusted else allowance(self.size)

    def section(self, name: str) -> bytes:
        """A section's contents.

        Raises:
            BundleRefused: there is none, or it cannot be opened.
        """
        if name not in self._places:
            raise self._refused(f"it has no section {name!r}")
        at, size = self._places[name]
        self._file.seek(at)
        most = min(envelope.MAX_BYTES if name == "rows" else PART, self.allowance)
        kind = f"bundle {name}"
        try:
            return envelope.unseal(
                self._file.read(size), kind=kind, bound_to=self.header.uid, ring=self._ring, limit=most
            )
        except RecordDamaged as error:
            raise self._refused(error.problem) from None

    def copy_pack(self, out: IO[bytes]) -> int:
        """Write the workspace's objects; how many bytes they are."""
        names = [section.name for section in self.header.sections if section.name != "rows"]
        return sum(out.write(self.section(name)) for name in names)

    # ── taking it ───────────────────────────────────────────────────────────────────────────────

    def _take(self, source: IO[bytes]) -> None:
        """Read the whole file once. Later looks use this private copy, which no other process can change."""
        first, head = self._read_head(source)
        self.header = header = self._read_header(head)
        starts_at = len(first) + 4 + len(head)
        if self.size != starts_at + sum(section.size for section in header.sections) + _SEAL:
            raise self._refused("its length is not what its header says: it is cut off, or something was added")
        seal = _sealer(self._ring, header.key)
        seal.update(first + len(head).to_bytes(4) + head)
        self._places: dict[str, tuple[int, int]] = {}
        at, damaged = 0, ""
        for section in header.sections:
            if self._copy(source, section, seal) != section.digest:
                damaged = damaged or section.name
            self._places[section.name] = (at, section.size)
            at += section.size
        if not hmac.compare_digest(seal.digest(), source.read(_SEAL)) or source.read(1):
            what = "it was altered, or it is damaged" if header.is_signed else "it is damaged"
            raise self._refused(f"its seal does not fit: {what}")
        if damaged:
            raise self._refused(f"section {damaged!r} is damaged")

    def _copy(self, source: IO[bytes], section: Section, seal: hmac.HMAC | hashlib._Hash) -> bytes:
        digest, left = hashlib.sha256(), section.size
        while left and (part := source.read(min(left, _READ))):
            left -= len(part)
            digest.update(part)
            seal.update(part)
            self._file.write(part)
        if left:
            raise self._refused("it is cut off")
        return digest.digest()

    def _read_head(self, source: IO[bytes]) -> tuple[bytes, bytes]:
        first = source.readline(64)
        number = first.removeprefix(_MAGIC).removesuffix(b"\n")
        if not first.startswith(_MAGIC) or not number.isdigit() or len(number) > 9:
            raise self._refused("it is not a bundle of perdure", do="choose the file that `perdure export` made")
        if int(number) > FORMAT:
            raise self._refused(f"a newer perdure made it (format {int(number)})", do="update perdure here")
        length = int.from_bytes(source.read(4))
        if length > _MOST_HEADER:
            raise self._refused("its header has no possible length")
        return first, source.read(length)

    def _read_header(self, head: bytes) -> Header:
        try:
            header = msgspec.msgpack.decode(head, type=Header)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise self._refused(f"its header cannot be read, it is cut off or altered: {error}") from None
        names = [section.name for section in header.sections]
        if names != ["rows", *(f"workspace {number}" for number in range(len(names) - 1))]:
            raise self._refused("its sections are not those of a bundle")
        if any(section.size > PART + _AROUND for section in header.sections[1:]):
            raise self._refused("a part of its workspace is larger than any may be")
        return header

    def _refused(self, problem: str, *, do: str = "export it again where the task came from") -> BundleRefused:
        return BundleRefused(str(self.path), problem, do=do)


def _opened(path: Path) -> IO[bytes]:
    """The file, if it is one: a pipe or a terminal would be waited for."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that is not the name of a file"
        raise BundleRefused(str(path), f"it cannot be read: {why}", do="name a file that exists") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise BundleRefused(str(path), "it is not a file", do="name the file that `perdure export` made")
    return open(number, "rb")


def _beside(path: Path) -> str | None:
    """The folder of the bundle if it is writable and has room for a copy; else the folder of temporary files."""
    folder = os.path.dirname(os.path.abspath(path))
    return folder if os.access(folder, os.W_OK) else None
