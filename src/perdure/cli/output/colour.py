"""Print blocks in colour with rich. Imported only for a terminal, and only if rich is installed.

rich gets every text as Text, never as str, because it would interpret [markup] in a str.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from perdure.cli.output.blocks import Block, Cell, Fields, Line, Piece, text_of

_STYLES = {
    "pending": "blue",
    "running": "cyan",
    "paused": "yellow",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "magenta",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
    "moved": "yellow",
    "faint": "dim",
    "strong": "bold",
}


def draw_in_colour(blocks: Sequence[Block]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    for number, block in enumerate(blocks):
        if isinstance(block, Line):
            console.print(Text.assemble(*map(_text, block.pieces)), soft_wrap=True)
            continue
        if number:
            console.print()
        if isinstance(block, Fields):
            console.print(_fields(block))
            continue
        if block.title:
            console.print(Text(block.title, "bold"))
        grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for column in block.columns:
            grid.add_column(Text(column), overflow="fold")
        for row in block.rows:
            grid.add_row(*map(_text, row))
        console.print(grid)


def _fields(block: Fields) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, pieces in block.pairs:
        grid.add_row(Text(f"  {name}"), Text("\n").join(map(_text, pieces)))
    return grid


def _text(piece: Piece) -> Text:
    style = _STYLES.get(piece.style, "") if isinstance(piece, Cell) else ""
    return Text(text_of(piece), style)
