"""The interface by which a kind of unit is saved and restored.

    class Counter(UnitType):
        kind = "counter"
        async def capture(self, live, place): return {"n": live.n}
        async def restore(self, recipe, place): return MyCounter(recipe["n"])

    register(Counter())

`perdure._runtime.conformance` checks that a kind keeps the promises made here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure._ground.secrets.crypto import KeyRing
from perdure._model import Verdict
from perdure._runtime.context.context import Context

Json = Any


@dataclass(frozen=True)
class Place:
    """The environment in which a unit is captured or restored: the task, its context, and access to the store."""

    task_id: str
    uid: str
    host: str
    now_ms: int
    context: Context
    home: Path  # a private folder beside the store, for large things
    keeper_home: Path = Path(os.devnull)
    namespace: str = "default"
    ring: KeyRing = field(default_factory=KeyRing)  # the keys at hand
    fresh: bool = False  # make anew what could be reattached: a fingerprint asks for it
    is_trusted: bool = True  # its recipes were written here, or signed
    from_host: str = ""  # where it was saved
    coming: tuple[str, ...] = ()  # folders that a workspace will put back

    @property
    def can_seal(self) -> bool:
        """True if captured data is sealed by a key, so that it may hold a secret."""
        return self.ring.current is not None

    @property
    def has_moved(self) -> bool:
        """True if this is another machine than the one it was saved on."""
        return bool(self.from_host) and self.from_host != self.host

    def given(self, name: str) -> Mapping[str, Any]:
        """The functions that this process has given for the unit, because a record cannot hold them."""
        return self.context.given.get(name, {})


class UnitType:
    """A kind of unit. `capture` and `restore` are enough; the others have answers that fit most kinds."""

    kind: str = ""
    is_connection: bool = False  # listed in a cut's `connections`

    async def capture(self, live: Any, place: Place) -> Json:
        """All that is needed to bring it back: plain data, no secret in clear. Changes nothing the user can see."""
        raise NotImplementedError

    async def validate(self, recipe: Json, place: Place) -> Verdict:
        """The verdict it would get. Changes nothing: starts no process, writes no file and sends nothing that has an
        effect.

        Raises:
            Incompatible: it must not be brought back; the whole restore is refused.
        """
        return Verdict("rebuilt", f"made anew from what was saved of the {self.kind}")

    def waits(self, recipe: Json, place: Place) -> bool:
        """True if only the task's own code can bring it back: it has a function for it that is not given here yet."""
        return False

    async def restore(self, recipe: Json, place: Place) -> Any:
        """Bring it back. The result is passed to `rollback` if a later unit fails.

        An implementation that raises undoes everything it has begun.
        """
        raise NotImplementedError

    async def rollback(self, live: Any, place: Place) -> None:
        """Undo `restore`: no process, connection, port, file or variable of it is left."""
        await self.close(live)

    async def commit(self, live: Any, place: Place) -> None:
        """The whole restore stands: let go of what `rollback` would have needed."""

    async def close(self, live: Any) -> None:
        """Let go of the live thing."""
