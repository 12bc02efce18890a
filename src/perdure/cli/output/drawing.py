"""Print blocks: as plain text, or in colour on a terminal."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence

from perdure._ground.exception_text import in_one_line
from perdure.cli.output.blocks import Block, Cell, Fields, Line, Piece, Table, text_of


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
    """The number of columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)
