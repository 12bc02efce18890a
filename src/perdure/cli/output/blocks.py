"""Print lines, tables and fields, as plain text or, on a terminal with rich, in colour.

Ids, messages, labels and states come from agents, and an agent repeats what it has read. Every text therefore passes
`safe` here before it is printed, so that it cannot control the terminal.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from perdure._ground.encoding.json_values import HIDDEN
from perdure._ground.exception_text import in_one_line


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


def draw(blocks: Sequence[Block], *, may_colour: bool) -> None:
    blocks = [_in_lines(block) for block in blocks]
    if may_colour and sys.stdout is not None and sys.stdout.isatty() and _has_rich():
        from perdure.cli.output.colour import draw_in_colour

        draw_in_colour(blocks)
        return
    for number, block in enumerate(blocks):
        gap = "\n" if number and not isinstance(block, Line) else ""
        print(gap + "\n".join(_in_plain_text(block)))


def _in_lines(block: Block) -> Block:
    """Break the texts of fields at their line breaks, and put the texts of lines and tables on one line."""
    if isinstance(block, Line):
        return Line([_one_line(piece) for piece in block.pieces])
    if isinstance(block, Table):
        return block._replace(rows=[[_one_line(piece) for piece in row] for row in block.rows])
    return Fields([(name, [line for piece in pieces for line in _broken(piece)]) for name, pieces in block.pairs])


def _broken(piece: Piece) -> list[Piece]:
    text, style = (piece.text, piece.style) if isinstance(piece, Cell) else (piece, "")
    return [Cell(line, style) for line in text.split("\n")] if "\n" in text else [piece]


def _one_line(piece: Piece) -> Piece:
    text, style = (piece.text, piece.style) if isinstance(piece, Cell) else (piece, "")
    return Cell(in_one_line(text), style) if "\n" in text else piece


def _has_rich() -> bool:
    """rich is an extra."""
    from importlib.util import find_spec

    return find_spec("rich") is not None


# ── plain text ───────────────────────────────────────────────────────────────────────────────────


def text_of(piece: Piece) -> str:
    return safe(piece.text if isinstance(piece, Cell) else piece)


def _in_plain_text(block: Block) -> list[str]:
    if isinstance(block, Line):
        return ["".join(map(text_of, block.pieces))]
    if isinstance(block, Fields):
        widest = max((len(name) for name, _ in block.pairs), default=0)
        return [
            f"  {name if first else '':{widest}}  {text}".rstrip()
            for name, pieces in block.pairs
            for first, text in zip([True] + [False] * len(pieces), map(text_of, pieces), strict=False)
        ]
    rows = [list(block.columns), *([text_of(piece) for piece in row] for row in block.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    indent = "  " if block.title else ""
    lines = [indent + "  ".join(map(_padded, row, widths)).rstrip() for row in rows]
    return [block.title, *lines] if block.title else lines


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """How many columns the text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)
