"""The app: a store, and what is done with it. Wiring only."""

from __future__ import annotations

from pathlib import Path
from typing import ParamSpec, TypeVar

from perdure._durable import DurableFunction, run_here
from perdure._ground.config import find_address
from perdure._ground.crypto import KeyRing
from perdure._ground.ids import check_id
from perdure._store import Store, share
from perdure._tasks import Tasks, release_all

P = ParamSpec("P")
R = TypeVar("R")


class Perdure:
    """perdure in this process.

    Without a url it uses PERDURE_URL, or the nearest .perdure/ upwards; the first write makes one here.
    """

    def __init__(self, url: str | Path | None = None, *, key: str | None = None, namespace: str = "default") -> None:
        check_id(namespace, "namespace")
        self._store = Store(share(find_address(url)), KeyRing.load(key), namespace)
        self.tasks = Tasks(self._store)

    async def run(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out a durable function in this process and give its result.

        An id that exists is attached to: finished, its result is given; unfinished, it is carried on.
        """
        result: R = await run_here(self.tasks, id, fn, args, kwargs)
        return result

    async def close(self) -> None:
        """Give back what this app holds and commit what is queued."""
        await release_all(self._store)
        await self._store.close()

    async def __aenter__(self) -> Perdure:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
