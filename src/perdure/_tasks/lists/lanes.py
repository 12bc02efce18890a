"""Choose where to look for the tasks that a filter wants. Pure: reads nothing.

A lane is a stretch of an index with the tasks of one status, function, agent or parent, newest first. A filter can be
answered from several lanes; the shortest is the quickest. The other fields of the filter are checked for each task that
is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from perdure._ground.clock import to_ms
from perdure._ground.ids import least_uid
from perdure._model import FINISHED, STATUSES, TaskFilter
from perdure.errors import InvalidInput

LAST_UID = "~"  # sorts after every uid
# A uid is made shortly before its task is written, which has a clock of its own.
_SLACK_MS = 600_000
_LAST_CHARACTER = 0x10FFFF
# Lanes by status hold just what these say.
_PLAIN = {"namespace", "archived", "hidden", "statuses"}


class Lane(NamedTuple):
    name: str  # of its queries: page_by_…, count_by_…, extent_by_…
    value: str
    hidden: int = 0  # of a lane by status: whether it has the hidden tasks, or the others


class Wanted(NamedTuple):
    """A filter as the store takes it."""

    params: Mapping[str, Any]
    groups: Sequence[Sequence[Lane]]  # each one holds every task that fits
    is_plain: bool  # every task of the first group fits
    below: str  # uids of tasks that fit lie between these two
    above: str
    prefix: str | None  # of ids that are shown first


def wanted_by(
    filter_: TaskFilter, namespace: str, parent_uid: str | None, marks: Collection[str] | None = None
) -> Wanted | None:
    """The lanes and checks for a filter; None if no task can match, whatever the store holds.

    With `marks`, a task also needs one of them: they stand for what its rows say (`_looked.sql` has them all).
    """
    statuses = _statuses(filter_)
    texts = [filter_.function, filter_.queue, filter_.agent, filter_.text, filter_.schedule]
    texts += [one for pair in filter_.tags.items() for one in pair]
    if statuses == frozenset() or not all(is_storable(text) for text in texts if text is not None):
        return None
    if filter_.version is not None and abs(filter_.version) >= 1 << 63:
        return None
    id_from, id_to = _range_of(f"{filter_.schedule}@") if filter_.schedule is not None else (None, None)
    text = filter_.text or None
    not_from, not_to = _range_of(text) if text is not None else (None, None)
    params: dict[str, Any] = {
        "namespace": namespace,
        "archived": int(filter_.archived),
        "hidden": int(filter_.hidden),
        "statuses": json.dumps(sorted(statuses)) if statuses is not None else None,
        "reasons": json.dumps(sorted(filter_.reason)) if filter_.reason else None,
        "function": filter_.function,
        "version": filter_.version,
        "queue": filter_.queue,
        "agent": filter_.agent,
        "parent": parent_uid,
        "tags": json.dumps(dict(filter_.tags)),
        "since": _ms(filter_.since),
        "until": _ms(filter_.until),
        "changed_since": _ms(filter_.changed_since),
        "id_from": id_from,
        "id_to": id_to,
        "not_from": not_from,
        "not_to": not_to,
        "text": lowered(text) if text is not None else None,
        "marks": " ".join(sorted(marks)) if marks is not None else None,
    }
    checked = {name for name, value in params.items() if value is not None} - _PLAIN
    is_plain = checked == {"tags"} and not filter_.tags
    return Wanted(
        params,
        _groups(statuses, filter_, parent_uid),
        is_plain,
        least_uid(params["until"] + _SLACK_MS) if params["until"] is not None else LAST_UID,
        least_uid(params["since"] - _SLACK_MS) if params["since"] is not None else "",
        text,
    )


def with_prefix(wanted: Wanted) -> Mapping[str, Any]:
    """The same for the tasks whose ids begin with the searched text."""
    params = wanted.params
    id_from, id_to = params["not_from"], params["not_to"]
    if params["id_from"] is not None:
        id_from, id_to = max(id_from, params["id_from"]), min(id_to, params["id_to"])
    return {**params, "text": None, "not_from": None, "not_to": None, "id_from": id_from, "id_to": id_to}


def is_storable(text: str) -> bool:
    """True if a store can hold the text at all."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def lowered(text: str) -> str:
    """In small letters, of ASCII alone: as every engine has it."""
    return text.encode().lower().decode()


def _statuses(filter_: TaskFilter) -> frozenset[str] | None:
    """The possible statuses of a task; None for any."""
    found: frozenset[str] | None = filter_.status or None
    if filter_.reason:
        found = (found or frozenset({"paused"})) & {"paused"}
    if filter_.situation:
        unknown = filter_.situation - FINISHED
        if unknown:
            choose = f"choose from {', '.join(sorted(FINISHED))}"
            raise InvalidInput(f"tasks cannot be listed by the situation {min(unknown)!r}", do=choose)
        found = filter_.situation if found is None else found & filter_.situation
    return found


def _groups(statuses: frozenset[str] | None, filter_: TaskFilter, parent_uid: str | None) -> list[list[Lane]]:
    of_status = [status for status in STATUSES if statuses is None or status in statuses]
    by_status = [Lane("status", status) for status in of_status]
    if filter_.archived:
        by_status += [Lane("archived", status) for status in of_status if status in FINISHED]
    if filter_.hidden:
        by_status += [lane._replace(hidden=1) for lane in by_status]
    groups = [by_status]
    if filter_.function is not None:
        groups.append([Lane("function", filter_.function)])
    if filter_.agent:
        groups.append([Lane("agent", filter_.agent)])
    if parent_uid is not None:
        groups.append([Lane("parent", parent_uid)])
    return groups


def _range_of(prefix: str) -> tuple[str, str]:
    """The texts that begin with it: from the first one on, and before the second."""
    last = prefix
    while last and ord(last[-1]) == _LAST_CHARACTER:
        last = last[:-1]
    if not last:
        return prefix, chr(_LAST_CHARACTER) * 300  # no id is as long
    following = ord(last[-1]) + 1
    return prefix, last[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)


def _ms(moment: datetime | None) -> int | None:
    return to_ms(moment) if moment is not None else None
