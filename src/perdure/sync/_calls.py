"""What plain durable functions use where nothing can be generated: streams, spans, files that are appended to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import perdure
from perdure import automation, loops, streams
from perdure._durable import as_async_pieces, each_of, inside_of, waited
from perdure._ground.bridge import inner_of
from perdure._ground.durations import Duration
from perdure.errors import InvalidInput

S = TypeVar("S")
E = TypeVar("E")


@contextmanager
def span(name: str) -> Iterator[None]:
    """Mark a stretch of work; at its end the task gets a checkpoint with this label, once."""
    with inside_of(perdure.span(name)):
        yield


def timeout(seconds: float) -> NoReturn:
    """Refused: nothing can cut off a plain function."""
    raise InvalidInput(
        f"timeout({seconds}) is used in a plain function, which nothing can cut off",
        kept="nothing ran",
        do="make the durable function async and use perdure.timeout, or limit the task: fn.options(timeout=…)",
    )


def carry_over(*args: Any, **kwargs: Any) -> None:
    """Begin the function again with these arguments and an empty journal. Never returns."""
    waited(perdure.carry_over(*args, **kwargs))


def stream(
    name: str,
    produce: Callable[[streams.Prefix], Iterator[str]],
    *,
    silence: Duration | None = None,
    retry: perdure.Retry | None = None,
) -> Stream:
    """The pieces of `produce`, each kept as it arrives, each given once.

    After a crash `produce(prefix)` is asked for what follows. `silence` and `retry` as in perdure.stream.
    """
    return Stream(perdure.stream(name, as_async_pieces(produce), silence=silence, retry=retry))


class Stream:
    """A stream on its way to the code."""

    def __init__(self, inner: streams.Stream) -> None:
        self._inner = inner
        self.name: str = inner.name
        self._items = each_of(inner)

    @property
    def text(self) -> str:
        """All pieces given so far, joined."""
        return self._inner.text

    @property
    def is_complete(self) -> bool:
        return self._inner.is_complete

    @property
    def marker(self) -> streams.Marker | None:
        """Why the stream is not whole; None when it is, or when nothing has gone wrong so far."""
        return self._inner.marker

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        return next(self._items)

    def close(self) -> None:
        """Stop producing; what was kept stays."""
        waited(self._inner.aclose())


@contextmanager
def appending(path: str | Path, *, name: str = "appending", flush: bool = False) -> Iterator[Appending]:
    """A file that this step alone appends to; each `write` is in it once, whatever crashes."""
    with inside_of(loops.appending(path, name=name, flush=flush)) as inner:
        yield Appending(inner)


class Appending:
    """A file that is appended to; `done` is how many writes are in it, those of earlier attempts too."""

    def __init__(self, inner: loops.appending) -> None:
        self._inner = inner

    @property
    def done(self) -> int:
        return self._inner.done

    def write(self, data: bytes | str) -> None:
        """Append; on disk and marked soon, with flush=True when this returns."""
        waited(self._inner.write(data))

    def flush(self) -> None:
        """Have all that was written on disk, and marked."""
        waited(self._inner.flush())


class Reducer(automation.Reducer[S, E]):
    """A state machine that outlives its process: each task that carries out `function` is one of them."""

    def send(self, app: Any, task_id: str, event: E) -> None:  # type: ignore[override]
        """Add an event to the log; it is on disk when this returns."""
        waited(super().send(inner_of(app), task_id, event))

    def events(self, app: Any, task_id: str) -> Sequence[E]:  # type: ignore[override]
        """The events that were taken so far, in order: the truth."""
        return waited(super().events(inner_of(app), task_id))

    def state_at(self, app: Any, task_id: str, number: int) -> S:  # type: ignore[override]
        """The state after the first `number` events, folded from the log."""
        events = self.events(app, task_id)
        if not 0 <= number <= len(events):
            raise InvalidInput(f"task {task_id!r} has taken {len(events)} events, not {number}")
        return self.fold(events[:number])
