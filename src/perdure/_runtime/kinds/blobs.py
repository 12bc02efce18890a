"""An opaque value: kept as it is, given back as it was."""

from __future__ import annotations

from typing import Any

from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType


class BlobType(UnitType):
    """Bytes or plain data that mean something to their owner only."""

    kind = "blob"

    async def capture(self, live: Any, place: Place) -> Any:
        return {"value": live}

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        return Verdict("rebuilt", "the same value, from the checkpoint")

    async def restore(self, recipe: Any, place: Place) -> Any:
        return recipe["value"]
