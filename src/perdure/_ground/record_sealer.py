"""The program that seals and opens the keeper's records: the keeper itself has no cryptography.

Standard input is a socket. It carries the keys first, preceded by their length in four bytes; then questions, answered
in order:

    S or O · length of binding (4) · length of data (4) · binding · data      seal it, open it
    + or K or - · length (4) · data                                           done, the key is missing, it does not open

It ends when the other side does, and is of use only to the process that started it. Here too: how a key for these
records is derived from a store's, by clients.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import hmac
import os
import signal
import sys
from struct import Struct

from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure.errors import KeyMissing, PerdureError

_ASKED, _ANSWERED = Struct(">cII"), Struct(">cI")
_KIND = "unit"
_PR_SET_DUMPABLE = 4


def derived(ring: KeyRing) -> str:
    """The keys by which a keeper seals its records, as text, the current one first; empty without a key. The store's
    keys cannot be derived from them."""
    if ring.current is None:
        return ""
    names = [ring.current.id, *(name for name in ring.ids if name != ring.current.id)]
    secrets = {name: hmac.digest(ring.get(name).secret, b"perdure keeper records", hashlib.sha256) for name in names}
    return ",".join(f"{name}:{base64.b64encode(secret).decode()}" for name, secret in secrets.items())


def answer(what: bytes, bound_to: str, data: bytes, ring: KeyRing) -> tuple[bytes, bytes]:
    """Whether it worked, and the data sealed or opened, or the reason."""
    try:
        if what == b"S":
            return b"+", envelope.seal(data, _KIND, bound_to, ring)
        return b"+", envelope.unseal(data, kind=_KIND, bound_to=bound_to, ring=ring)
    except KeyMissing as error:
        return b"K", str(error).partition("\n")[0].encode()
    except PerdureError as error:
        return b"-", str(error).partition("\n")[0].encode()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with os.fdopen(0, "rb") as asked, os.fdopen(1, "wb") as out:
        ring = KeyRing.load(asked.read(int.from_bytes(asked.read(4))).decode(), {})
        while len(head := asked.read(_ASKED.size)) == _ASKED.size:
            what, bound, length = _ASKED.unpack(head)
            bound_to = asked.read(bound).decode()
            how, data = answer(what, bound_to, asked.read(length), ring)
            out.write(_ANSWERED.pack(how, len(data)) + data)
            out.flush()


if __name__ == "__main__":
    main()
