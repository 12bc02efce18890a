"""From the raw path of a request to its route.

The path is split at `/` before it is decoded, so that an id may contain `/`, `:`, `%`, `?` and spaces. Trailing
slashes, double slashes and paths that differ in case match nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from perdure.server.table import Route

_HEX = frozenset(b"0123456789abcdefABCDEF")


class Match(NamedTuple):
    """The routes that a path leads to, by method, and the values of its parts."""

    routes: Mapping[str, Route]
    parts: Mapping[str, str]


class _Node:
    __slots__ = ("by_word", "ending", "free")

    def __init__(self) -> None:
        self.by_word: dict[bytes, _Node] = {}
        self.free: _Node | None = None
        self.ending: dict[str, Route] = {}


class Router:
    """Finds the route of a raw path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.segments:
            if segment.startswith("{"):
                node.free = node.free or _Node()
                node = node.free
            else:
                node = node.by_word.setdefault(segment.encode(), _Node())
        node.ending[route.method] = route

    def find(self, raw_path: bytes) -> Match | None:
        """The routes for this path; None when there is none."""
        if not raw_path.startswith(b"/"):
            return None
        node, values = self._root, []
        for segment in raw_path[1:].split(b"/"):
            if (word := node.by_word.get(segment)) is not None:
                node = word
            elif node.free is not None and (value := decode_segment(segment)) is not None:
                node = node.free
                values.append(value)
            else:
                return None
        if not node.ending:
            return None
        any_route = next(iter(node.ending.values()))
        names = [segment[1:-1] for segment in any_route.segments if segment.startswith("{")]
        return Match(node.ending, dict(zip(names, values, strict=True)))


def decode_segment(segment: bytes) -> str | None:
    """One segment of a raw path as text; None when it is empty, badly escaped, not UTF-8, or holds a NUL."""
    if not segment or not _is_well_escaped(segment):
        return None
    try:
        text = unquote_to_bytes(segment).decode("utf-8", "strict")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _is_well_escaped(segment: bytes) -> bool:
    at = segment.find(b"%")
    while at >= 0:
        if len(segment) < at + 3 or segment[at + 1] not in _HEX or segment[at + 2] not in _HEX:
            return False
        at = segment.find(b"%", at + 3)
    return True
