"""Lines, tables and fields of output; drawing.py prints them.

Ids, messages, labels and states come from agents, and an agent repeats what it has read. Every text therefore passes
`safe` here before it is printed, so that it cannot control the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from perdure._ground.encoding.json_values import HIDDEN


class Cell(NamedTuple):
    """A text and its style, named by its meaning: a status, `faint`, `added`, …"""

    text: str
    style: str = ""


Piece = str | Cell


class Line(NamedTuple):
    """Pieces side by side."""

    pieces: Sequence[Piece]


class Table(NamedTuple):
    """Rows under headings; the last column takes the remaining width."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Piece]]
    title: str = ""


class Fields(NamedTuple):
    """Names with their values, of one or more lines each."""

    pairs: Sequence[tuple[str, Sequence[Piece]]]


Block = Line | Table | Fields


def line(*pieces: Piece) -> Line:
    return Line(pieces)


def safe(text: str) -> str:
    """The text, with an escape for every character that would control a terminal."""
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def safe_lines(text: str) -> str:
    """Like `safe`, for several lines; the lines after the first are indented."""
    first, *rest = text.split("\n")
    return "\n".join([safe(first), *(f"  {safe(line)}" for line in rest)])


def text_of(piece: Piece) -> str:
    return safe(piece.text if isinstance(piece, Cell) else piece)
