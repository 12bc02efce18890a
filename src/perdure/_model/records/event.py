"""The events of a task, in order, and the chain that shows whether they were changed.

Each lifecycle verb makes one event. Its digest covers all its fields; its hash covers the digest and the hash before
it. The newest hash is in the task's row and can be kept elsewhere. Changing, removing or swapping an event breaks the
chain at that place. A rewrite of the whole chain shows only against a head that was kept outside the store.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

GENESIS = b"\0" * 32


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened to a task."""

    task_id: str
    number: int
    at: datetime
    kind: str
    author: Mapping[str, Any]
    data: Any


class Link(Struct, frozen=True):
    """An event as the chain sees it: plain body bytes, or None when its key is not here."""

    number: int
    at_ms: int
    kind: str
    author: str
    body: bytes | None
    digest: bytes
    hash: bytes


class ChainCheck(Struct, frozen=True):
    """The result of `audit verify`: the first record that does not fit, or None; and what it could not read."""

    events: int
    broken_at: int | None
    problem: str
    unseen: int
    head: bytes


def digest(uid: str, kind: str, at_ms: int, author: str, body: bytes) -> bytes:
    name, at = uid.encode(), str(at_ms).encode()
    what, who = _counted_text(kind), _counted_text(author)
    fields = _COUNTS[len(name)], name, what, _COUNTS[len(at)], at, who, _count(len(body)), body
    return hashlib.sha256(b"".join(fields)).digest()


_count = struct.Struct(">Q").pack
_COUNTS = [_count(number) for number in range(256)]  # a uid and a moment are never longer


@lru_cache(maxsize=256)
def _counted_text(text: str) -> bytes:
    """For the fields that are the same in most events of a process."""
    part = text.encode()
    return _count(len(part)) + part


def chain(before: bytes, digest_: bytes) -> bytes:
    return hashlib.sha256(before + digest_).digest()


def verify(uid: str, links: Iterable[Link], count: int, head: bytes) -> ChainCheck:
    """Walk the chain from its beginning to the head in the task's row."""
    before, unseen, number = GENESIS, 0, 0
    for link in links:
        number += 1
        problem = ""
        if link.number != number:
            problem = f"event {number} is missing"
        elif link.body is None:
            unseen += 1
        elif digest(uid, link.kind, link.at_ms, link.author, link.body) != link.digest:
            problem = f"event {number} ({link.kind}) was changed"
        if not problem and chain(before, link.digest) != link.hash:
            problem = f"event {number} ({link.kind}) does not follow from the one before it"
        if problem:
            return ChainCheck(number, number, problem, unseen, before)
        before = link.hash
    if (number, before) != (count, head):
        return ChainCheck(number, number + 1, f"the task's row knows {count} events, {number} are here", unseen, before)
    return ChainCheck(number, None, "", unseen, before)
