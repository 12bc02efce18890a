"""The answers that the layers of a task's memory got in one call, including its writes.

A call has one tape per layer. In a replay the tape gives its recorded answers; where the layer goes further, the tape
records the new ones. A write into the task's own store ends a piece of the tape: the value and the entry with that
piece are one commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perdure._durable.values import declared_here, encode_error
from perdure._ground import crash_points as crash
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._model import Entry, encode_entry
from perdure._replay import Recorded
from perdure._store import Write

if TYPE_CHECKING:
    from perdure._durable.attempt import Attempt

OP, WRITE = "memory", "write"
_seal = envelope.sealer_of("entry")

Answer = tuple[str, bytes | None, bytes | None]  # the question, and its answer: a value or an error


class NotOnRecord(Exception):
    """A layer asks something that it did not ask when the call was recorded."""


class MemoryCall:
    """One memory call under way."""

    def __init__(
        self,
        attempt: Attempt,
        path: str,
        asked: bytes,
        tails: dict[str, list[Answer]],
        *,
        is_whole: bool,
        is_in_step: bool,
    ) -> None:
        self.attempt, self.path, self.asked, self.is_in_step = attempt, path, asked, is_in_step
        self.is_whole = is_whole  # it has ended before: nothing is done again
        self.lost: set[str] = set()  # layers that asked something that is not on record
        self._tails = tails
        self._tapes: dict[str, Tape] = {}

    def tape(self, layer: str) -> Tape:
        found = self._tapes.get(layer)
        if found is None:
            found = self._tapes[layer] = Tape(self, layer, self._tails.get(layer, ()))
        return found

    def new_answers(self) -> dict[str, list[Answer]]:
        """By layer: the answers since its last write."""
        return {layer: tape.new for layer, tape in self._tapes.items() if tape.new}


class Tape:
    """The answers one layer got in one call, in order."""

    def __init__(self, call: MemoryCall, layer: str, tail: Any) -> None:
        self._call, self._layer = call, layer
        self._given: deque[Answer] = deque()
        self.new: list[Answer] = []
        self.has_written = self.has_looked = False
        cursor = call.attempt.cursor
        while type(found := cursor.ask(call.path, self._layer, call.asked, in_body=True)) is Recorded:
            assert found.entry.value is not None
            self._given += codec.decode(found.entry.value, list[Answer])
        self._path = f"{call.path}|{self._layer}#{cursor.track(call.path).counts[self._layer]}"
        self._given += tail

    @property
    def is_empty(self) -> bool:
        return not self._given

    def take(self, what: str) -> Answer | None:
        """The next recorded answer; None when the layer has gone further than the record.

        Raises:
            NotOnRecord: the layer asked something else then.
        """
        if self._given and self._given[0][0] == what:
            return self._given.popleft()
        if self._given or self._call.is_whole:
            self._call.lost.add(self._layer)
            self._given.clear()
            if self._call.is_whole:
                raise NotOnRecord(f"{what} is not on record")
        return None

    def is_marked(self, what: str, is_so: Callable[[], bool]) -> bool:
        """True if `what` was true when the call was recorded; if that was not recorded, whether it is true now. True
        once."""
        if self.has_looked:
            return False
        self.has_looked = True
        if self._given:
            return self._given[0][0] == what and self._given.popleft() is not None
        if self._call.is_whole or not is_so():
            return False
        self.add(what, None)
        return True

    def add(self, what: str, value: Any) -> None:
        self.new.append((what, codec.encode(value), None))

    def add_error(self, what: str, error: BaseException) -> None:
        self.new.append((what, None, encode_error(error, declared_here())))

    async def write(self, given: dict[str, Any], seen: int | None) -> int | None:
        """Commit the value together with its entry. Returns the new version, or None if the write was refused."""
        attempt = self._call.attempt
        kept = self._entry([*self.new, (WRITE, codec.encode((seen or 0) + 1), None)])
        refused = self._entry([*self.new, (WRITE, codec.encode(None), None)])
        params = {
            **given, "uid": attempt.uid, "line": attempt.line, "position": 0, "epoch": attempt.epoch,
            "worker": attempt.fence.worker,
            "entry": self._sealed(kept), "refused": self._sealed(refused),
        }  # fmt: skip
        size = 400 + sum(len(value) for value in params.values() if type(value) is bytes)
        write = Write(attempt.store.committer, "record_memory", params, attempt.key, size, attempt.fence, True)
        position = attempt.store.committer.submit_entry(write, params, attempt.fence, True)
        row = await write
        attempt.fence.check()
        crash.place("memory.written")
        assert row is not None
        version = row[1] or None
        self._learn(position, kept if version else refused)
        return version

    async def save(self) -> None:
        """Put the answers so far on disk: what follows happens elsewhere, and a repeat must have the same values."""
        if self.new:
            entry = self._entry(self.new)
            position, write = self._call.attempt.record(entry, urgent=True)
            await write
            self._call.attempt.fence.check()
            self._learn(position, entry)

    def _entry(self, answers: list[Answer]) -> Entry:
        attempt = self._call.attempt
        now, data = attempt.store.clock.now_ms(), codec.encode(answers, list[Answer])
        return Entry("result", OP, self._path, self._call.asked, data, at=now, epoch=attempt.epoch)

    def _sealed(self, entry: Entry) -> bytes:
        return _seal(encode_entry(entry), self._call.attempt.uid, self._call.attempt.store.ring)

    def _learn(self, position: int, entry: Entry) -> None:
        cursor, self.new, self.has_written = self._call.attempt.cursor, [], True
        cursor.learn(position, entry)
        number = cursor.track(self._call.path).count(self._layer)
        self._path = f"{self._call.path}|{self._layer}#{number}"
