"""The parts of a shell: its commands, marks in its output, its reported state, the recipe to make it again.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.kinds.shell.command_output import (
    ended_output,
    forgotten_output,
    forgotten_result,
    running_output,
    told_command,
)
from perdure.keeper.kinds.shell.marks import Mark, Marks
from perdure.keeper.kinds.shell.shell_commands import Command, Commands, LARGEST_OUTPUT, digest, ledger
from perdure.keeper.kinds.shell.shell_line import ShellLine
from perdure.keeper.kinds.shell.shell_state import ShellState, recipe_again
from perdure.keeper.kinds.shell import recipes
__all__ = [
    "ended_output",
    "forgotten_output",
    "forgotten_result",
    "running_output",
    "told_command",
    "Mark",
    "Marks",
    "Command",
    "Commands",
    "LARGEST_OUTPUT",
    "digest",
    "ledger",
    "ShellLine",
    "ShellState",
    "recipe_again",
    "recipes",
]
