"""Processes the keeper starts and watches: spawning, isolation, terminals, output.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.process.isolation import Isolation
from perdure.keeper.process.output_log import OutLog, Part, memory_file
from perdure.keeper.process.ports import is_taken
from perdure.keeper.process.processes import COOKIE, OWNER, is_running
from perdure.keeper.process.spawner import CannotStart, Command, TOKEN_FD, spawn
from perdure.keeper.process.spooled_program import Spooled, UNSEEN, check_command
from perdure.keeper.process import ports
from perdure.keeper.process import processes
from perdure.keeper.process import terminal_state
__all__ = [
    "Isolation",
    "OutLog",
    "Part",
    "memory_file",
    "is_taken",
    "COOKIE",
    "OWNER",
    "is_running",
    "CannotStart",
    "Command",
    "TOKEN_FD",
    "spawn",
    "Spooled",
    "UNSEEN",
    "check_command",
    "ports",
    "processes",
    "terminal_state",
]
