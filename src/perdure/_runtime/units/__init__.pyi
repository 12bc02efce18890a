"""Live things on the agent's side: shells, services, files, requests, their output and verdicts.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.units.descriptors import (
    KeptFile,
    KeptListener,
    KeptPipe,
    KeptSocket,
    absolute,
    mode_of,
    problem_of,
)
from perdure._runtime.units.kept_command import CommandEnd, KeptCommand, command_name, input_file
from perdure._runtime.units.kept_units import Kept, end_keeper, kept_for
from perdure._runtime.units.output import Output
from perdure._runtime.units.output_marks import hide_mark_numbers
from perdure._runtime.units.readiness import Ready, command, http, log_line, port
from perdure._runtime.units.remote_units import UnitAccess, UnitCommand, UnitOutput, UnitProcess, UnitRecord, Units
from perdure._runtime.units.request import KeptRequest, request_recipe
from perdure._runtime.units.service import Service, ServiceState, service_recipe
from perdure._runtime.units.shell import CommandOutput, CommandResult, Shell, exit_code, shell_command
from perdure._runtime.units.shell_contents import Contents, Instead, contents_of, made_here
from perdure._runtime.units.unit import Owner, Rest, U, Unit, opened, secrets_of
from perdure._runtime.units.unit_notes import (
    MadeElsewhere,
    ONCE,
    UnitNote,
    command_of,
    forget_notes,
    is_note,
    note_that_came,
    with_contents,
)
from perdure._runtime.units.verdicts import MADE_ANEW, ending, restarted, verdict_of
__all__ = [
    "KeptFile",
    "KeptListener",
    "KeptPipe",
    "KeptSocket",
    "absolute",
    "mode_of",
    "problem_of",
    "CommandEnd",
    "KeptCommand",
    "command_name",
    "input_file",
    "Kept",
    "end_keeper",
    "kept_for",
    "Output",
    "hide_mark_numbers",
    "Ready",
    "command",
    "http",
    "log_line",
    "port",
    "UnitAccess",
    "UnitCommand",
    "UnitOutput",
    "UnitProcess",
    "UnitRecord",
    "Units",
    "KeptRequest",
    "request_recipe",
    "Service",
    "ServiceState",
    "service_recipe",
    "CommandOutput",
    "CommandResult",
    "Shell",
    "exit_code",
    "shell_command",
    "Contents",
    "Instead",
    "contents_of",
    "made_here",
    "Owner",
    "Rest",
    "U",
    "Unit",
    "opened",
    "secrets_of",
    "MadeElsewhere",
    "ONCE",
    "UnitNote",
    "command_of",
    "forget_notes",
    "is_note",
    "note_that_came",
    "with_contents",
    "MADE_ANEW",
    "ending",
    "restarted",
    "verdict_of",
]
