"""A request before identity and route are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came in. Who sent it has not been checked yet."""

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: Mapping[str, str]
    doubled: frozenset[str]  # names of headers that were sent more than once
    address: str
    peer_uid: int | None  # of a Unix socket
    request_id: str
