"""Seal the contents and the names of a cut, always to the same bytes.

Contents of a cut are found by what they are, so the same ones must come out the same: the nonce is not drawn, but
made from the plaintext under a key of its own. Without the key, a reader can tell of a cut only how many files
it has, how large they are and how deep, and which of them are equal.

    packed   1 · nonce · sealed (length (4) · zstd)
    pieces   0 · for each piece of 1 MB: nonce · sealed, bound to its number and to whether it is the last

Owns the form of sealed contents and names. Which key is whose is in objects.py.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import IO

from perdure._ground.encoding import zstd
from perdure._ground.secrets.crypto import Key
from perdure._ground.secrets.envelope import LEVEL_SMALL, MAX_BYTES
from perdure.errors import RecordDamaged

PIECE = 1 << 20
_NONCE, _TAG = 12, 16
_OVER = _NONCE + _TAG
_PACKED, _PIECES = b"\1", b"\0"
# Up to here contents are packed as a whole.
_MOST_PACKED = 32 * PIECE


class Sealer:
    """Seal and open the contents of cuts with one key."""

    id: str
    name: Callable[[bytes], bytes]
    open_name: Callable[[bytes], bytes]

    def __init__(self, key: Key) -> None:
        self.id = key.id
        self._cipher = Key(key.id, hmac.digest(key.secret, b"perdure cuts: cipher", "sha256")).cipher
        self._nonces = hmac.digest(key.secret, b"perdure cuts: nonces", "sha256")
        self.name = lru_cache(maxsize=65536)(self._name)
        self.open_name = lru_cache(maxsize=65536)(self._open_name)

    # ── names ───────────────────────────────────────────────────────────────────────────────────

    def path(self, path: bytes) -> bytes:
        return b"/".join(map(self.name, path.split(b"/")))

    def open_path(self, path: bytes) -> bytes:
        """
        Raises:
            RecordDamaged: a part of it was not sealed by this key.
        """
        return b"/".join(map(self.open_name, path.split(b"/")))

    def _name(self, part: bytes) -> bytes:
        return base64.urlsafe_b64encode(self._seal(part, b"name"))

    def _open_name(self, part: bytes) -> bytes:
        try:
            sealed = base64.urlsafe_b64decode(part)
        except ValueError:
            raise RecordDamaged("a name in a cut", "it is not sealed") from None
        return self._open(sealed, b"name")

    # ── contents ────────────────────────────────────────────────────────────────────────────────

    def whole(self, data: bytes) -> bytes:
        """Contents that are in memory."""
        if len(data) <= _MOST_PACKED:
            packed = zstd.pack(data, LEVEL_SMALL)
            if len(packed) < len(data):
                return _PACKED + self._seal(len(data).to_bytes(4) + packed, b"packed")
        return b"".join(self.pieces(data[at : at + PIECE] for at in range(0, len(data), PIECE)))

    def pieces(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Contents that come in pieces of PIECE bytes, the last one maybe shorter."""
        yield _PIECES
        number, waiting = 0, b""
        for part in parts:
            if waiting:
                yield self._seal(waiting, b"piece %d 0" % number)
                number += 1
            waiting = part
        yield self._seal(waiting, b"piece %d 1" % number)

    def open(self, source: IO[bytes], out: IO[bytes]) -> None:
        """Write the plain contents of what was sealed.

        Raises:
            RecordDamaged: it was not sealed by this key, or is not whole.
        """
        if source.read(1) == _PACKED:
            opened = self._open(source.read(), b"packed")
            out.write(_unpacked(opened))
            return
        number, part = 0, source.read(PIECE + _OVER)
        while part:
            following = source.read(PIECE + _OVER)
            out.write(self._open(part, b"piece %d %d" % (number, not following)))
            number, part = number + 1, following
        if not number:
            raise RecordDamaged("a content of a cut", "it is cut off")

    # ── the cipher ──────────────────────────────────────────────────────────────────────────────

    def _seal(self, data: bytes, about: bytes) -> bytes:
        nonce = hmac.digest(self._nonces, about + b"\0" + data, "sha256")[:_NONCE]
        sealed: bytes = self._cipher.encrypt(nonce, data, about)
        return nonce + sealed

    def _open(self, sealed: bytes, about: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            opened: bytes = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], about)
        except (InvalidTag, ValueError):
            raise RecordDamaged("a content of a cut", f"key {self.id!r} does not open it") from None
        return opened


def sealed_size(size: int) -> int:
    """The length of contents of this size, once they are sealed in pieces."""
    return 1 + size + _OVER * max(1, -(-size // PIECE))


def _unpacked(opened: bytes) -> bytes:
    length = int.from_bytes(opened[:4])
    try:
        if length > MAX_BYTES:
            raise ValueError("it announces too much")
        return zstd.unpack(opened[4:], length)
    except ValueError as error:
        raise RecordDamaged("a content of a cut", str(error)) from None
