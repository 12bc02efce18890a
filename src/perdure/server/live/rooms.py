"""Limits on the number of streams, for each credential and for the whole server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perdure.server.http import Caller, HttpProblem


class Rooms:
    """The places for streams of one server."""

    def __init__(self, per_credential: int, total: int, on_refused: Callable[[str], None]) -> None:
        """`on_refused` is told the namespace of each stream that finds no place."""
        self._per_credential, self._total, self.on_refused = per_credential, total, on_refused
        self._taken: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._taken.total()

    def taken_in(self, namespace: str) -> int:
        return self._by_namespace[namespace]

    @contextmanager
    def place_for(self, caller: Caller) -> Iterator[None]:
        """A place while the block lasts.

        Raises:
            HttpProblem: all are taken.
        """
        who = f"{caller.how} {caller.credential}"
        if self._taken[who] >= self._per_credential or self.taken >= self._total:
            self.on_refused(caller.namespace)
            raise HttpProblem(
                429,
                "too_many_streams",
                f"a credential has at most {self._per_credential} streams, and this server {self._total}",
                do="close streams that you do not read, and ask again",
                headers={"Retry-After": "5"},
            )
        self._taken[who] += 1
        self._by_namespace[caller.namespace] += 1
        try:
            yield
        finally:
            self._taken[who] -= 1
            self._by_namespace[caller.namespace] -= 1
            if not self._taken[who]:
                del self._taken[who]
