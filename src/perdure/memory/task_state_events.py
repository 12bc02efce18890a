"""A task's durable state, and the effect of each event on it. Pure.

    state   checkpoints [{timestamp, depth}], files [path], data {key: value}: what the model is shown
    Doc     the state, and what is needed to continue: hashes, commits, the data a child was given

`reduce(doc, event)` gives the next doc; a doc is never changed in place, so any two can be compared. Folding
the same events in the same order gives the same doc, in any process.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from perdure.errors import InvalidInput, NotStorable, RecordDamaged

Merge = Literal["shallow", "namespace"]
OUTCOME = "__outcome"
RESERVED = "__"
# A list must not grow for ever; the model is shown only the newest few.
MOST_CHECKPOINTS = 10_000
MOST_TOKENS = 32
# Data nested deeper than this is not meant for a model, and Python's recursion limit is not far.
MOST_DEPTH = 100
_CONTAINERS = (Mapping, list, tuple)
_FORMAT = 1


class Place(NamedTuple):
    """The place of a recorded file, and the time it was recorded."""

    folder: str
    host: str
    at: str
    size: int


class Doc(NamedTuple):
    """The whole durable state. `given` is the data a child began with, `merged` the data taken over from each child."""

    checkpoints: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    data: Mapping[str, Any] = {}
    made: int = 0  # number of checkpoints ever made; the oldest can be removed
    revision: int = 0  # number of events ever applied
    hashes: Mapping[str, str] = {}
    committed: Mapping[str, str] = {}
    head: str = ""  # the last commit of ours
    given: Mapping[str, Any] | None = None
    merged: Mapping[str, Any] = {}
    uid: str = ""  # of the task, when there is one
    tokens: tuple[str, ...] = ()  # tokens of the last writes, by which a writer recognises its own
    places: Mapping[str, Place] = {}  # of the files, by path

    @property
    def state(self) -> dict[str, Any]:
        """A copy of what the model is shown; changing it changes nothing."""
        return {
            "checkpoints": [dict(one) for one in self.checkpoints],
            "files": list(self.files),
            "data": copy.deepcopy(dict(self.data)),
        }


EMPTY = Doc()


# ── events ───────────────────────────────────────────────────────────────────────────────────────


class Checkpointed(NamedTuple):
    timestamp: str
    depth: int


class Recorded(NamedTuple):
    path: str
    sha256: str
    place: Place


class DataSet(NamedTuple):
    """Values that were set (None is a value), and in `remove` the keys that were deleted."""

    values: Mapping[str, Any]
    remove: tuple[str, ...] = ()


class Returned(NamedTuple):
    child: str
    doc: Doc
    merge: Merge


class Ended(NamedTuple):
    outcome: str


class Committed(NamedTuple):
    files: Mapping[str, str]
    head: str


Event = Checkpointed | Recorded | DataSet | Returned | Ended | Committed


def reduce(doc: Doc, event: Event) -> Doc:
    """The doc after one event."""
    after: Doc = _REDUCERS[type(event)](doc, event)
    return after._replace(revision=doc.revision + 1)


def fold(doc: Doc, events: Iterable[Event]) -> Doc:
    for event in events:
        doc = reduce(doc, event)
    return doc


def _checkpointed(doc: Doc, event: Checkpointed) -> Doc:
    return _with_checkpoints(doc, ({"timestamp": event.timestamp, "depth": event.depth},))


def _with_checkpoints(doc: Doc, more: tuple[Mapping[str, Any], ...], count: int | None = None) -> Doc:
    added = len(more) if count is None else count
    return doc._replace(checkpoints=(*doc.checkpoints, *more)[-MOST_CHECKPOINTS:], made=doc.made + added)


def _recorded(doc: Doc, event: Recorded) -> Doc:
    files = doc.files if event.path in doc.files else (*doc.files, event.path)
    hashes, places = {**doc.hashes, event.path: event.sha256}, {**doc.places, event.path: event.place}
    return doc._replace(files=files, hashes=hashes, places=places)


def _data_set(doc: Doc, event: DataSet) -> Doc:
    kept = {key: value for key, value in doc.data.items() if key not in event.remove}
    return doc._replace(data={**kept, **event.values})


def _ended(doc: Doc, event: Ended) -> Doc:
    return doc._replace(data={**doc.data, OUTCOME: event.outcome})


def _committed(doc: Doc, event: Committed) -> Doc:
    return doc._replace(committed={**doc.committed, **event.files}, head=event.head or doc.head)


# ── children ─────────────────────────────────────────────────────────────────────────────────────


def spawned(parent: Doc) -> Doc:
    """The first state of a child: everything its parent has, except how the parent ended."""
    data = {key: copy.deepcopy(value) for key, value in parent.data.items() if not key.startswith(RESERVED)}
    given = {
        "count": len(parent.checkpoints),
        "files": list(parent.files),
        "hashes": dict(parent.hashes),
        "data": {key: digest(value) for key, value in data.items()},
    }
    checkpoints = tuple(dict(one) for one in parent.checkpoints)
    return Doc(
        checkpoints,
        parent.files,
        data,
        made=len(checkpoints),
        hashes=parent.hashes,
        committed=parent.hashes,  # files that the parent recorded are committed by the parent
        given=given,
        places=parent.places,
    )


def own_part(doc: Doc) -> Doc:
    """The part that a child has added to its first state; the parent takes it over when the child returns."""
    given: Mapping[str, Any] = {"count": 0, "files": [], "hashes": {}, "data": {}, **(doc.given or {})}
    mine = max(0, doc.made - given["count"])
    data = {
        key: value
        for key, value in doc.data.items()
        if not key.startswith(RESERVED) and given["data"].get(key) != digest(value)
    }
    files = tuple(path for path in doc.files if path not in given["files"])
    hashes = {path: found for path, found in doc.hashes.items() if given["hashes"].get(path) != found}
    checkpoints = doc.checkpoints[len(doc.checkpoints) - min(mine, len(doc.checkpoints)) :]
    places = {path: place for path, place in doc.places.items() if path in hashes}
    return Doc(checkpoints, files, data, made=mine, hashes=hashes, places=places)


def _returned(doc: Doc, event: Returned) -> Doc:
    """Append the child's checkpoints, join the files, and put its data over ours or under the child's name.

    If the same child returns again, only its new part is taken over: a parent that died in between can repeat the call.
    """
    before = doc.merged.get(event.child, {"count": 0, "revision": -1})
    if event.doc.revision == before["revision"]:
        return doc
    part = own_part(event.doc)
    new = max(0, part.made - before["count"])
    doc = _with_checkpoints(doc, part.checkpoints[len(part.checkpoints) - min(new, len(part.checkpoints)) :], new)
    data = join_data(doc.data, part.data, event.merge, event.child)
    merged = {**doc.merged, event.child: {"count": part.made, "revision": event.doc.revision}}
    committed = {path: event.doc.committed[path] for path in part.hashes if path in event.doc.committed}
    return doc._replace(
        files=join_files(doc.files, part.files),
        data=data,
        hashes={**doc.hashes, **part.hashes},
        committed={**doc.committed, **committed},
        merged=merged,
        places={**doc.places, **part.places},
    )


def join_files(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """The files of both, each once, ours first. Associative."""
    return tuple(dict.fromkeys((*ours, *theirs)))


def join_data(ours: Mapping[str, Any], theirs: Mapping[str, Any], merge: Merge, child: str) -> dict[str, Any]:
    """Theirs over ours, key by key (associative); or theirs as a whole under the child's name."""
    return {**ours, **theirs} if merge == "shallow" else {**ours, child: dict(theirs)}


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


_REDUCERS: dict[type, Any] = {
    Checkpointed: _checkpointed,
    Recorded: _recorded,
    DataSet: _data_set,
    Returned: _returned,
    Ended: _ended,
    Committed: _committed,
}


def iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def plain_values(values: Any) -> dict[str, Any]:
    """The values as JSON data, as a separate copy.

    Raises:
        InvalidInput: a key is reserved, or the values are not a mapping from names.
        NotStorable: JSON cannot represent a value.
    """
    if not isinstance(values, Mapping) or not all(isinstance(key, str) and key for key in values):
        raise InvalidInput("data is set as a mapping of names to values")
    reserved = [key for key in values if key.startswith(RESERVED)]
    if reserved:
        raise InvalidInput(f"the key {reserved[0]!r} is reserved", do=f"choose a name without {RESERVED!r} in front")
    plain = {}
    for key, value in values.items():
        if is_deeper(value, MOST_DEPTH):
            raise NotStorable(key, f"it is nested more than {MOST_DEPTH} deep", do="give flatter values")
        try:
            text = json.dumps([key, value], allow_nan=False)
            plain[key] = json.loads(text)[1]
            json.dumps(plain[key], ensure_ascii=False).encode()
            key.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise NotStorable(key, str(error).splitlines()[0], do="give values that JSON can hold") from None
    return plain


def is_deeper(value: Any, most: int) -> bool:
    """True if mappings and lists are nested deeper than this; checked without recursion."""
    level = [value]
    for _ in range(most):
        inner = [one.values() if isinstance(one, Mapping) else one for one in level if isinstance(one, _CONTAINERS)]
        level = [item for items in inner for item in items]
    return any(isinstance(one, _CONTAINERS) for one in level)


def to_stored(doc: Doc) -> dict[str, Any]:
    """The doc as plain values, for any serializer."""
    plain = {name: value for name, value in doc._asdict().items() if name not in ("checkpoints", "files", "data")}
    return {"format": _FORMAT, **doc.state, **plain}


def from_stored(stored: Any) -> Doc:
    """The stored doc; a bare state, as another program may have written it, is accepted too.

    Raises:
        RecordDamaged: it is not a stored doc.
        InvalidInput: a newer perdure wrote it, and it can contain fields unknown here.
    """
    try:
        written_as = stored.get("format", _FORMAT)
        checkpoints = [{"timestamp": one["timestamp"], "depth": one["depth"]} for one in stored["checkpoints"]]
        given = {**EMPTY._asdict(), "made": len(checkpoints), **stored, "checkpoints": checkpoints}
        if written_as <= _FORMAT:
            return msgspec.convert([given[name] for name in Doc._fields], Doc)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise RecordDamaged("the stored state of a task", f"{type(error).__name__}: {error}") from None
    raise InvalidInput("a newer perdure wrote the state; it was not changed", do="use that version of perdure")
