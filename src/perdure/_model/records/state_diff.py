"""The changes between two states. Pure.

Mappings are compared by key. Lists are aligned by content: an item put at the head of a list is one change, however
long the list is. Items that have no twin are paired within the same stretch, by their `id`, `key` or `name` if they
have one, else in order, and compared in turn. An item that only changed its place is `moved`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from perdure._ground.encoding import codec

Json = Any
Path = tuple[str | int, ...]

_IDENTITIES = ("id", "key", "name")
# Stretches without a single item that is unique on both sides are aligned exactly up to this size; beyond, in order.
_MOST_EXACT = 400
_DEEPEST = 200
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Change(Struct, frozen=True):
    """One place where two states differ. `path` leads there by keys and positions: in the state before for what was
    removed, in the state after for all else."""

    path: Path
    kind: Literal["added", "removed", "changed", "moved"]
    before: Json = None
    after: Json = None
    moved_from: Path | None = None

    @property
    def place(self) -> str:
        """The path as a person writes it: `files[3].name`."""
        return spell_path(self.path)


class Diff(Struct, frozen=True, kw_only=True):
    """Changes, and how many more there are."""

    changes: Sequence[Change]
    total: int
    left_off: Sequence[tuple[Path, int]] = ()  # by the first two keys of their paths

    def __iter__(self) -> Any:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def spell_path(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def diff(before: Json, after: Json, path: Path = ()) -> Iterator[Change]:
    """Each place that differs, in the order of the keys and positions."""
    if len(path) < _DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_maps(before, after, path)
    elif len(path) < _DEEPEST and type(before) is type(after) and isinstance(before, list | tuple):
        yield from _diff_lists(before, after, path)
    elif _mark(before) != _mark(after):
        yield Change(path, "changed", before, after)


def limited(changes: Iterable[Change], limit: int) -> Diff:
    """The first changes, and a count of the others."""
    kept: list[Change] = []
    others: Counter[Path] = Counter()
    for change in changes:
        if len(kept) < limit:
            kept.append(change)
        else:
            others[change.path[:2]] += 1
    return Diff(changes=kept, total=len(kept) + others.total(), left_off=others.most_common(100))


def _diff_maps(before: dict[Any, Any], after: dict[Any, Any], path: Path) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        place = (*path, key if type(key) in (str, int) else str(key))
        if key not in after:
            yield Change(place, "removed", before[key])
        elif key not in before:
            yield Change(place, "added", None, after[key])
        elif before[key] is not after[key]:
            yield from diff(before[key], after[key], place)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────


def _diff_lists(before: Sequence[Any], after: Sequence[Any], path: Path) -> Iterator[Change]:
    old, new = [_mark(item) for item in before], [_mark(item) for item in after]
    gaps = _gaps(old, new)
    pairs: dict[int, int] = {}  # of items that were changed: where it is now, where it was
    for a, b, c, d in gaps:
        pairs |= _pairs(before, after, range(a, b), range(c, d))
    changed = set(pairs.values())
    removed = [at for a, b, _, _ in gaps for at in range(a, b) if at not in changed]
    added = [at for _, _, c, d in gaps for at in range(c, d) if at not in pairs]
    moved = _moved(old, new, removed, added)
    found: list[tuple[int, int, Iterator[Change]]] = []
    gone = set(moved.values())
    found += [(at, 0, iter((Change((*path, at), "removed", before[at]),))) for at in removed if at not in gone]
    for at in added:
        change = Change((*path, at), "added", None, after[at])
        if at in moved:
            change = Change((*path, at), "moved", None, after[at], (*path, moved[at]))
        found.append((at, 1, iter((change,))))
    found += [(at, 1, diff(before[was], after[at], (*path, at))) for at, was in pairs.items()]
    for _, _, changes in sorted(found, key=lambda one: one[:2]):
        yield from changes


Gap = tuple[int, int, int, int]  # from, to in the one; from, to in the other


def _gaps(old: Sequence[bytes], new: Sequence[bytes]) -> list[Gap]:
    """The stretches between items that both lists have in the same order."""
    found: list[Gap] = []
    waiting: list[Gap] = [(0, len(old), 0, len(new))]
    while waiting:
        a, b, c, d = waiting.pop()
        while a < b and c < d and old[a] == new[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
        if a == b or c == d:
            found.append((a, b, c, d))
            continue
        anchors = _anchors(old, new, (a, b, c, d))
        if not anchors:
            found += _exact(old, new, (a, b, c, d))
            continue
        for at, to in [*anchors, (b, d)]:
            waiting.append((a, at, c, to))
            a, c = at + 1, to + 1
    return sorted(found)


def _anchors(old: Sequence[bytes], new: Sequence[bytes], gap: Gap) -> list[tuple[int, int]]:
    """Items that are there once on each side, as many as possible that have one order."""
    a, b, c, d = gap
    here, there = Counter(old[a:b]), Counter(new[c:d])
    places = {new[at]: at for at in range(c, d) if there[new[at]] == 1}
    both = [(at, places[old[at]]) for at in range(a, b) if here[old[at]] == 1 and old[at] in places]
    # The longest rising row of their places.
    ends: list[int] = []
    piles: list[int] = []
    before: list[int] = [-1] * len(both)
    for at, (_, place) in enumerate(both):
        pile = bisect_left(ends, place)
        if pile == len(ends):
            ends.append(place)
            piles.append(at)
        else:
            ends[pile], piles[pile] = place, at
        before[at] = piles[pile - 1] if pile else -1
    row: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        row.append(both[at])
        at = before[at]
    return row[::-1]


def _exact(old: Sequence[bytes], new: Sequence[bytes], gap: Gap) -> list[Gap]:
    a, b, c, d = gap
    if b - a > _MOST_EXACT or d - c > _MOST_EXACT:
        return [gap]
    from difflib import SequenceMatcher  # few programs compare states

    matched = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_opcodes()
    return [(a + i, a + j, c + k, c + m) for tag, i, j, k, m in matched if tag != "equal"]


def _pairs(before: Sequence[Any], after: Sequence[Any], old: range, new: range) -> dict[int, int]:
    """Items of one stretch that are the same one, changed: where each is now, and where it was."""
    if not old or not new:
        return {}
    named = {identity: at for at in old if (identity := _identity(before[at])) is not None}
    found: dict[int, int] = {}
    for at in new:
        identity = _identity(after[at])
        if identity is not None and identity in named:
            found[at] = named.pop(identity)
    taken = set(found.values())
    left = [at for at in old if at not in taken and _identity(before[at]) is None]
    free = [at for at in new if at not in found and _identity(after[at]) is None]
    if len(old) == len(new):  # nothing was added or removed here: each is what stood in its place
        left, free = [at for at in old if at not in taken], [at for at in new if at not in found]
    return found | dict(zip(free, left, strict=False))


def _identity(item: object) -> tuple[str, bytes] | None:
    if isinstance(item, dict):
        for name in _IDENTITIES:
            value = item.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return name, _mark(value)
    return None


def _moved(old: Sequence[bytes], new: Sequence[bytes], removed: list[int], added: list[int]) -> dict[int, int]:
    """Items that were taken out in one place and put in at another: where each is now, and where it was."""
    places = {old[at]: at for at in removed}
    counts = Counter(old[at] for at in removed), Counter(new[at] for at in added)
    return {at: places[new[at]] for at in added if counts[0][new[at]] == counts[1][new[at]] == 1}


def _mark(value: object) -> bytes:
    """A mark that tells values apart: equal values of one type have the same mark, 1 and True have two."""
    try:
        data = _encode(value)
    except Exception:  # of a type that msgpack does not have
        try:
            data = b"\xc1" + codec.encode(value)
        except Exception:
            data = b"\xc1" + repr(value).encode(errors="replace")
    return data if len(data) <= 32 else b"#" + hashlib.blake2b(data, digest_size=24).digest()
