"""Combine a new state with changes that its author has not seen.

A write of a state names three values: `read`, the state its author started from; `now`, the state in the
store; `given`, the state the author wants. Where only one side changed, that side counts. Where both added to the
end of one list, the list gets both, the stored items first. Where both changed one value to
different values, neither is right, and the path is reported.
"""

from __future__ import annotations

from typing import Any, Final, Literal

Keep = Literal["none", "given"]


class Overlap(Exception):
    """Both sides changed the value at `path`."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        super().__init__(".".join(path))


def merge(read: object, now: object, given: object, *, keep: Keep = "none") -> Any:
    """The state with the changes of both sides.

    With keep="given" the author's value counts where both sides changed one value.

    Raises:
        Overlap: both sides changed one value, and `keep` is "none".
    """
    return _merge(read, now, given, (), keep)


def is_same(left: Any, right: Any) -> bool:
    """True if two stored values are equal in value and in type: 1 is not True, and NaN is NaN."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right) or (left != left and right != right)  # noqa: PLR0124


def _merge(read: object, now: object, given: object, path: tuple[str, ...], keep: Keep) -> Any:
    if is_same(given, now) or is_same(read, now):
        return given
    if is_same(read, given):
        return now
    if isinstance(now, dict) and isinstance(given, dict) and isinstance(read, dict):
        return _merge_keys(read, now, given, path, keep)
    if type(read) is list and type(now) is list and type(given) is list:
        size = len(read)
        if is_same(now[:size], read) and is_same(given[:size], read):
            return [*now, *given[size:]]
    if keep == "given" and given is not _ABSENT:
        return given
    if keep == "given":
        return now
    raise Overlap(path)


def _merge_keys(
    read: dict[Any, Any], now: dict[Any, Any], given: dict[Any, Any], path: tuple[str, ...], keep: Keep
) -> dict[Any, Any]:
    merged = {}
    for key in [*given, *(key for key in now if key not in given)]:
        was, is_now, wanted = (side.get(key, _ABSENT) for side in (read, now, given))
        value = _merge(was, is_now, wanted, (*path, str(key)), keep)
        if value is not _ABSENT:
            merged[key] = value
    return merged


class _Absent:
    """Stands for a key that one side does not have."""


_ABSENT: Final = _Absent()
