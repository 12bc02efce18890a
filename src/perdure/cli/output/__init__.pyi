"""Output for people and programs: tables, colours, words, JSON.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.cli.output.blocks import Block, Cell, Fields, Line, Piece, Table, line, safe
from perdure.cli.output.live_view import View, bar, follow, watch
from perdure.cli.output import blocks
from perdure.cli.output import drawing
from perdure.cli.output import plan_text
from perdure.cli.output import words
__all__ = [
    "Block",
    "Cell",
    "Fields",
    "Line",
    "Piece",
    "Table",
    "line",
    "safe",
    "View",
    "bar",
    "follow",
    "watch",
    "blocks",
    "drawing",
    "plan_text",
    "words",
]
