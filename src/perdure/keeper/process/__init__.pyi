"""Processes the keeper starts and watches: spawning, isolation, terminals, output.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.process.ancestry import descends, is_below, is_dead
from perdure.keeper.process.isolation import Isolation
from perdure.keeper.process.memory_files import memory_file, memory_file_with
from perdure.keeper.process.ports import is_taken
from perdure.keeper.process.processes import COOKIE, OWNER, is_running
from perdure.keeper.process.spawner import CannotStart, Program, TOKEN_FD, spawn
from perdure.keeper.process import ports
from perdure.keeper.process import processes
from perdure.keeper.process import terminal_state
__all__ = [
    "descends",
    "is_below",
    "is_dead",
    "Isolation",
    "memory_file",
    "memory_file_with",
    "is_taken",
    "COOKIE",
    "OWNER",
    "is_running",
    "CannotStart",
    "Program",
    "TOKEN_FD",
    "spawn",
    "ports",
    "processes",
    "terminal_state",
]
