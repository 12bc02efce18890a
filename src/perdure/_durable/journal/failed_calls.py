"""Try a durable function again after it has failed: failed calls are made again, finished ones stay done.

A replay reads every recorded entry, including errors, so a function that failed would fail in the same way for ever. So
when one fails, the entries that led to the failure are noted, and later attempts skip them:

    the calls whose errors it failed with, or, if those are not known, the failures since its last success;
    other calls of the same moment that failed or were cut off by it, as the others of a TaskGroup are;
    the code's own handling of the failure before it gave up, as in `except` and `finally`.

None of these may be an effect that happened: then the function is not tried again. It is not tried again after a
person's decision either, or with an uncertain effect: it would end in the same way.

Which entries those are is decided here, without looking anywhere. An error carries the bytes it was made from, so that
it is known again when the function raises it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perdure._durable.values import recorded_as
from perdure._ground.encoding import codec
from perdure._model import Entry, scope_of
from perdure._replay import UNCOUNTED

AGAIN = "again"
# Calls that are worth another try. A person's answer, or a limit that was reached, stays.
_CALLS = frozenset({"step", "inline", "effect", "effect.inline", "child", "streamed", "memory"})
# Neither a success nor a failure: they record how the code was told of one.
_SIGNS = frozenset({"timeout"})

Entries = Sequence[tuple[int, Entry]]


def errors_in(error: BaseException) -> set[bytes]:
    """The recorded errors that this exception is, contains, or was caused by."""
    found: set[bytes] = set()
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        data = recorded_as(one)
        if data is not None:
            found.add(data)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return found


def to_forget(entries: Entries, fatal: set[bytes]) -> list[int] | None:
    """The positions that the next attempt is not to read; None when the function cannot be tried again."""
    calls = [(position, entry) for position, entry in entries if _counts(entry)]
    if any(entry.error in fatal and not _may_be_tried(entry) for _, entry in calls if entry.error is not None):
        return None
    failed = _failed(calls, fatal)
    if not failed:
        return []
    first = min(failed)
    around = {scope for position, entry in calls if position in failed for scope in _scopes_around(entry)}
    last = {scope_of(entry.path): position for position, entry in calls if entry.kind != "intent"}
    forgotten = set(failed)
    for position, entry in calls:
        if position <= first or position in failed or entry.kind == "intent":
            continue
        is_around = scope_of(entry.path) in around
        if entry.op.startswith("effect") and (entry.kind == "cut" or (is_around and entry.error is None)):
            return None
        if is_around or (position == last[scope_of(entry.path)] and _has_failed(entry)):
            forgotten.add(position)
    paths = {entry.path for position, entry in calls if position in forgotten}
    tries = {position for position, entry in entries if entry.kind == "intent" and entry.path in paths}
    # Answers of memory layers in calls that are made again.
    tries |= {position for position, entry in entries if entry.op == "memory" and scope_of(entry.path) in paths}
    return sorted(forgotten | tries)


def _counts(entry: Entry) -> bool:
    return "|" not in scope_of(entry.path) and entry.op not in UNCOUNTED and not entry.path.startswith("~")


def _may_be_tried(entry: Entry) -> bool:
    return entry.op in _CALLS and not (entry.note or {}).get("open")


def _has_failed(entry: Entry) -> bool:
    if entry.kind == "cut":
        return not entry.op.startswith("effect")
    return entry.kind == "result" and entry.error is not None and _may_be_tried(entry)


def _failed(calls: Entries, fatal: set[bytes]) -> set[int]:
    # Of calls that failed in the same words it is the last: the code had gone on after the others.
    named = {entry.error: position for position, entry in calls if entry.error in fatal and entry.kind == "result"}
    if named:
        return set(named.values())
    succeeded = [position for position, entry in calls if scope_of(entry.path) == "" and _is_success(entry)]
    since = max(succeeded, default=0)
    trailing = [(position, entry) for position, entry in calls if position > since]
    signs = [position for position, entry in trailing if entry.op in _SIGNS]
    return {position for position, entry in trailing if _has_failed(entry)} | set(signs)


def _is_success(entry: Entry) -> bool:
    return entry.kind == "result" and entry.error is None and entry.op not in _SIGNS


def _scopes_around(entry: Entry) -> Iterator[str]:
    """Its own scope, and those that wait for it."""
    scope = scope_of(entry.path)
    yield scope
    while scope:
        scope = scope.rpartition("/")[0]
        yield scope


# ── the note ─────────────────────────────────────────────────────────────────────────────────────


def note_of(positions: Sequence[int], epoch: int, at: int) -> Entry:
    return Entry("result", AGAIN, f"~{AGAIN}", b"", codec.encode(list(positions)), at=at, epoch=epoch)


def remembered(entries: Entries, failed: Iterable[int]) -> list[tuple[int, Entry]]:
    """The entries without those that are to be forgotten, if the attempt that said so did fail; what they cost was
    spent all the same."""
    ended = set(failed)
    notes = [entry for _, entry in entries if entry.op == AGAIN and entry.epoch in ended and entry.value is not None]
    gone = {position for note in notes for position in codec.decode(note.value or b"", list[int])}
    found: list[tuple[int, Entry]] = []
    for position, entry in entries:
        if position not in gone:
            found.append((position, entry))
        elif "spent_tokens" in (entry.note or {}):
            found.append((position, Entry("result", "spent", f"|{AGAIN}|{position}", b"", note=entry.note)))
    return found
