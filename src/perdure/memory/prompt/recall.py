"""A task's state as the model reads it: JSON in <task_state>, cut to a budget, always whole JSON. Pure.

Cut means: the newest checkpoints and files, long texts shortened, large values replaced by what they are, and
`left_out` saying how much is not shown. Nothing in the state can close the tag: `<` is written as \\u003c. Secrets
are hidden before the text is cut, so that not even half of one remains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from perdure.memory.prompt.redaction import clean
from perdure.memory.prompt.tokens import CHARACTERS_PER_TOKEN
from perdure.memory.task_state_events import MOST_DEPTH, OUTCOME

TAG = "task_state"
_SHORTEST_TEXT = 12
_LONGEST_SECRET = 4_000
# The share of each part; the next part also gets what the one before does not need.
_DATA, _FILES = 0.6, 0.7


def render(state: Mapping[str, Any], budget: int, count: Callable[[str], int]) -> str | None:
    """The block, at most `budget` tokens as `count` counts them; None when not even the smallest block fits."""
    shortest = wrap({"checkpoints": [], "files": [], "data": {}, "left_out": _left_out(state, 0, 0, 0)})
    if not _is_huge(state, budget * CHARACTERS_PER_TOKEN):
        whole = wrap(clean(state))
        if count(whole) <= budget:
            return whole
    best = shortest if count(shortest) <= budget else None
    low, high = 1, budget * CHARACTERS_PER_TOKEN // 4
    while low <= high:  # search for the largest text that fits
        room = (low + high) // 2
        text = wrap(shortened(state, room))
        if count(text) <= budget:
            best, low = text, room + 1
        else:
            high = room - 1
    return best


def wrap(state: Mapping[str, Any]) -> str:
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"<{TAG}>\n{text.replace('<', chr(92) + 'u003c')}\n</{TAG}>"


def parse(text: str) -> Any:
    """The state in a block, as a model's tool or a test reads it."""
    return json.loads(text.strip().removeprefix(f"<{TAG}>").removesuffix(f"</{TAG}>"))


def shortened(state: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The state in about `room` characters, and how much of it that leaves out."""
    data = _short_mapping(state["data"], int(room * _DATA), first=(OUTCOME,))
    room -= _length(data)
    files = _newest(state["files"], int(room * _FILES), clean)
    checkpoints = _newest(state["checkpoints"], room - _length(files))
    left_out = _left_out(state, len(checkpoints), len(files), len(data))
    return {"checkpoints": checkpoints, "files": files, "data": data, "left_out": left_out}


def _left_out(state: Mapping[str, Any], checkpoints: int, files: int, data: int) -> dict[str, int]:
    missing = {
        "checkpoints": len(state["checkpoints"]) - checkpoints,
        "files": len(state["files"]) - files,
        "data": len(state["data"]) - data,
    }
    return {name: number for name, number in missing.items() if number}


def _newest(items: Sequence[Any], room: int, shown: Callable[[Any], Any] = lambda item: item) -> list[Any]:
    """The newest of them that fit, in their order."""
    taken: list[Any] = []
    for given in reversed(items):
        item = shown(given)
        room -= _length(item) + 1
        if room < 0:
            break
        taken.append(item)
    return taken[::-1]


def _short_mapping(values: Mapping[str, Any], room: int, first: tuple[str, ...] = ()) -> dict[str, Any]:
    """As many keys as fit, those in `first` before others; the values share the remaining room."""
    taken: dict[str, Any] = {}
    fitting = islice(values, max(0, room))  # a key needs more than one character
    wanted = [key for key in first if key in values] + [key for key in fitting if key not in first]
    for place, key in enumerate(wanted):
        needs = len(key) + 4
        share = max(_SHORTEST_TEXT, room // (len(values) - place))
        if room < _SHORTEST_TEXT:
            break
        if room < needs + _SHORTEST_TEXT:
            continue
        name = clean(key)
        taken[name] = _short(values[key], share - needs, key)
        room -= needs + _length(taken[name])
    return taken


def _short(value: Any, room: int, name: str = "") -> Any:
    room = max(_SHORTEST_TEXT, room)
    if isinstance(value, int | float) and len(str(value)) > room:
        value = str(value)
    if isinstance(value, str):
        shown: str = clean(value[: 2 * room + _LONGEST_SECRET], name)
        return shown if len(value) <= room else f"{shown[: room - 2]}… ({len(value):,} characters)"
    if isinstance(value, Mapping):
        if not _is_huge(value, room):
            return clean(value, name)
        inner = _short_mapping(value, room // 2)
        return {**inner, "…": f"{len(value) - len(inner):,} more"} if inner else f"({len(value):,} keys)"
    if isinstance(value, Sequence):
        if not _is_huge(value, room):
            return clean(value, name)
        last = [_short(item, room // 4, name) for item in value[-2:]] if room >= 4 * _SHORTEST_TEXT else []
        return [f"({len(value) - len(last):,} before)", *last] if last else f"({len(value):,} items)"
    return value


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _is_huge(value: Any, limit: int) -> bool:
    """True when the value is longer than `limit` characters or deeply nested. Does not write all of it out."""
    total = 0
    stack = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if isinstance(one, str):
            total += len(one) + 3
        elif isinstance(one, Mapping | Sequence):
            total += 2 + len(one)
            if total > limit or depth > MOST_DEPTH:
                return True  # before visiting values that can be millions
            inner = one if isinstance(one, Sequence) else [item for pair in one.items() for item in pair]
            stack.extend((item, depth + 1) for item in inner)
        else:
            total += 5
        if total > limit:
            return True
    return False
