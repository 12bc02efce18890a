"""Store a growing list: each version as the items it adds to an earlier one. Pure.

A conversation is a list that gains a message a turn. Stored whole at each turn it grows with its square. Here a version
is a *link*: how many items it keeps of an earlier version, and the items behind them. After 32 links of one level the
next link spans them all, one level up, so that 1,000 turns are read from about 60 links and each item is stored about
three times. Items are compared by their bytes: a message that was changed in place is stored again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

RUN = 32  # so many links of one level are spanned by one of the next
_KEYFRAME = 1 << 30  # above every level


class Item(NamedTuple):
    """One item of a list, as LangGraph's serializer wrote it."""

    type: str
    data: bytes


class Link(NamedTuple):
    version: str
    level: int
    keeps: int  # items of the version before it in the chain

    @property
    def is_keyframe(self) -> bool:
        return self.level == _KEYFRAME


class Chain(NamedTuple):
    """The links that the newest version is read from, oldest first, and its items."""

    links: tuple[Link, ...]
    items: tuple[Item, ...]

    @property
    def head(self) -> str:
        return self.links[-1].version

    @property
    def size(self) -> int:
        return sum(len(item.data) for item in self.items)


def extend(chain: Chain | None, version: str, items: Sequence[Item]) -> Chain:
    """The chain whose newest version holds these items."""
    items = tuple(items)
    if chain is not None:
        kept = _common(chain.items, items)
        if 2 * sum(len(item.data) for item in items[:kept]) >= sum(len(item.data) for item in items) and kept:
            return Chain(_merged((*chain.links, Link(version, 0, kept))), items)
    return Chain((Link(version, _KEYFRAME, 0),), items)


def _common(before: tuple[Item, ...], items: tuple[Item, ...]) -> int:
    for number, (one, other) in enumerate(zip(before, items, strict=False)):
        if one != other:
            return number
    return min(len(before), len(items))


def _merged(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """The last link takes the place of a full run of its level, one level up."""
    level = 0
    while len(run := _run(links, level)) == RUN:
        level += 1
        links = (*links[:-RUN], Link(links[-1].version, level, min(link.keeps for link in run)))
    return links


def _run(links: tuple[Link, ...], level: int) -> tuple[Link, ...]:
    """The links of this level at the end of the chain."""
    start = len(links)
    while start and links[start - 1].level == level:
        start -= 1
    return links[start:]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def row_of(chain: Chain) -> dict[str, Any]:
    """The newest link as it is stored. `run` names the earlier links of its level, so that few reads find them all."""
    link = chain.links[-1]
    tail = chain.items[link.keeps :]
    row: dict[str, Any] = {"types": _types(tail), "items": [item.data for item in tail]}
    if link.is_keyframe:
        return row
    run = _run(chain.links, link.level)
    row |= {"level": link.level, "keeps": link.keeps, "base": chain.links[-len(run) - 1].version}
    if link.level:
        row["run"] = [one.version for one in run[:-1]]
    else:
        row["nth"] = len(run)
        if len(run) > 1:
            row["before"] = run[-2].version
    return row


def is_list(row: dict[str, Any]) -> bool:
    return "items" in row


def wanted_by(row: dict[str, Any]) -> list[str]:
    """The versions that a row's value is made from besides itself and those its predecessors want."""
    if "level" not in row:
        return []
    return [row["base"], *row.get("run", ()), *([row["before"]] if "before" in row else [])]


def chain_of(version: str, rows: dict[str, dict[str, Any]]) -> Chain | None:
    """Put a version together from the rows that its chain is made of; None when one is missing."""
    links: list[Link] = []
    at: str | None = version
    while at is not None:
        row = rows.get(at)
        if row is None or not is_list(row):
            return None
        if "level" not in row:
            links.append(Link(at, _KEYFRAME, 0))
            break
        links.append(Link(at, row["level"], row["keeps"]))
        at = _predecessor(row)
    links.reverse()
    items: tuple[Item, ...] = ()
    for link in links:
        items = (*items[: link.keeps], *_items(rows[link.version]))
    return Chain(tuple(links), items)


def _predecessor(row: dict[str, Any]) -> str:
    before: str = row["run"][-1] if row.get("run") else row.get("before", row["base"])
    return before


def _types(items: Sequence[Item]) -> str | list[str]:
    """One word when all are of one type, as they nearly always are."""
    found = {item.type for item in items}
    return found.pop() if len(found) == 1 else [item.type for item in items]


def _items(row: dict[str, Any]) -> tuple[Item, ...]:
    types = row["types"]
    if isinstance(types, str):
        return tuple(Item(types, data) for data in row["items"])
    return tuple(Item(type_, data) for type_, data in zip(types, row["items"], strict=True))
