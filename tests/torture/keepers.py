"""Kill agents and keepers in the middle of shells' commands: a hundred random moments a seed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.runtime import matrix
from tests.runtime.kit import Place
from tests.support.processes import nursery

POINTS = 100


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perdure-keepers-") as folder:
        place = Place(Path(folder) / "store" / "perdure.db")
        try:
            with nursery() as children:
                asyncio.run(matrix.storm(place, children, POINTS, seed))
        finally:
            place.clear()
