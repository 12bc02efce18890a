"""Prove a password to a server without sending it: SCRAM-SHA-256, and MD5 for old servers. Pure.

RFC 5802 and 7677. With channel binding the proof also covers the server's certificate, so that a man in the middle with
another one cannot pass it on.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import unicodedata
from base64 import b64decode, b64encode

from perdure.keeper.session import wipe

_MOST_ITERATIONS = 10_000_000  # a server that asks for more wants to keep us busy
_LONGEST = 4096  # of what a server says in an exchange

UNBOUND = b"n,,"  # we do not bind
NOT_OFFERED = b"y,,"  # we would, and the server has not offered it


def bound_to(certificate_hash: bytes) -> bytes:
    """The channel of an exchange that is bound to the server's certificate."""
    return b"p=tls-server-end-point,," + certificate_hash


class ProofRefused(Exception):
    """The other side does not prove that it knows the password, or says what makes no sense."""


class Scram:
    """One exchange: `first`, then `final` of what the server said, then `check` of its proof."""

    def __init__(self, password: str, nonce: bytes, user: str = "", channel: bytes = UNBOUND) -> None:
        """PostgreSQL takes the user from the startup message, so it can be left out here."""
        self._password = _prepared(password)
        self._nonce = b64encode(nonce).decode()
        self._bare = f"n={user},r={self._nonce}"
        self._channel = channel
        self._proof = b""

    def first(self) -> bytes:
        flag = self._channel[: self._channel.index(b",,") + 2]
        return flag + self._bare.encode()

    def final(self, server_first: bytes) -> bytes:
        """Raises:
        ProofRefused: the server's nonce is not ours continued, or its numbers make no sense.
        """
        if self._proof:
            raise ProofRefused("the server begins its SCRAM exchange again")
        said = _text(server_first)
        nonce, salt, rounds = _first_of_server(said)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ProofRefused("the server's SCRAM nonce is not ours continued")
        if not 1 <= rounds <= _MOST_ITERATIONS:
            raise ProofRefused(f"the server asks for {rounds} SCRAM iterations")
        salted = hashlib.pbkdf2_hmac("sha256", self._password, salt, rounds)
        wipe(self._password)
        self._password = b""
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        unsigned = f"c={b64encode(self._channel).decode()},r={nonce}"
        signed = f"{self._bare},{said},{unsigned}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._proof = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return f"{unsigned},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raises:
        ProofRefused: the server does not know the password either.
        """
        said = _text(server_final)
        if said.startswith("e="):
            raise ProofRefused(f"the server ends the SCRAM exchange: {said[2:200]}")
        proof = b""
        with contextlib.suppress(ValueError):
            proof = b64decode(said[2:].partition(",")[0], validate=True) if said.startswith("v=") else b""
        if not self._proof or not hmac.compare_digest(proof, self._proof):
            raise ProofRefused("the server could not prove that it knows the password")


def md5(user: str, password: str, salt: bytes) -> bytes:
    """The answer to servers older than SCRAM."""
    inner = hashlib.md5(password.encode() + user.encode(), usedforsecurity=False).hexdigest()
    return b"md5" + hashlib.md5(inner.encode() + salt, usedforsecurity=False).hexdigest().encode() + b"\0"


def _text(said: bytes) -> str:
    if len(said) > _LONGEST:
        raise ProofRefused(f"the server says {len(said)} bytes in a SCRAM exchange")
    return said.decode("ascii", "replace")


def _first_of_server(said: str) -> tuple[str, bytes, int]:
    """Nonce, salt and iterations: in this order; anything after them is an extension that may be ignored."""
    parts = said.split(",")
    if [part[:2] for part in parts[:3]] != ["r=", "s=", "i="]:
        raise ProofRefused("the server's first SCRAM message is malformed")
    nonce, salt, rounds = (part[2:] for part in parts[:3])
    try:
        if len(rounds) > 9 or not rounds.isascii() or not rounds.isdecimal():
            raise ValueError(rounds)
        return nonce, b64decode(salt, validate=True), int(rounds)
    except ValueError:
        raise ProofRefused("the server's first SCRAM message is malformed") from None


def _prepared(password: str) -> bytes:
    """As SASLprep does for passwords that it allows; others are taken as they are, as servers do."""
    if password.isascii():
        return password.encode()
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in password if c not in _NOTHING)
    return unicodedata.normalize("NFKC", spaced).encode("utf-8", "surrogatepass")


# RFC 3454, B.1: characters that are mapped to nothing.
_NOTHING = frozenset("\u00ad\u034f\u1806\u180b\u180c\u180d\u200b\u200c\u200d\u2060\ufeff")
