"""Kill MCP clients, servers and keepers at random moments, over stdio and HTTP: thirty moments a seed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.mcp import matrix
from tests.runtime.kit import Place

POINTS = 30


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perdure-mcp-") as folder:
        place = Place(Path(folder) / "store" / "perdure.db")
        try:
            asyncio.run(matrix.storm(place, POINTS, seed, "http" if seed % 2 else "stdio"))
        finally:
            place.clear()
