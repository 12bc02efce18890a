"""Live things that outlive the agent: shells, services, files, sessions; saved, checked, and how they came back.

Each name is imported when it is first used: a program that keeps nothing live loads nothing of this.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure.errors import NotAllowed

if sys.platform == "win32":
    raise NotAllowed(
        "perdure's live runtime does not work on Windows: it needs Unix terminals and sockets",
        kept="everything else works: tasks, checkpoints, durable functions",
        do="run the agent in WSL to keep shells and services",
    )

if TYPE_CHECKING:
    from perdure._runtime import checkup, keeping, running
    from perdure._runtime.bundles import Exported, Imported, bring_in, export
    from perdure._runtime.conformance import check_unit_type
    from perdure._runtime.context import Context
    from perdure._runtime.contexts import context_of
    from perdure._runtime.continuity import Continuity
    from perdure._runtime.credentials import Token
    from perdure._runtime.environment import Rules
    from perdure._runtime.faces import awaited_types
    from perdure._runtime.files import KeptFile, KeptListener, KeptPipe, KeptSocket
    from perdure._runtime.fingerprints import Finding, Fingerprint
    from perdure._runtime.kept import Kept, end_keeper, kept_for
    from perdure._runtime.kinds import HttpSession, KeptWorkspace, QueuedRequest, RateLimits, RequestQueue
    from perdure._runtime.output import Output
    from perdure._runtime.plan import plan_for
    from perdure._runtime.postgres import PostgresSession, StatementOutcome, open_postgres
    from perdure._runtime.ready import Ready, command, http, log_line, port
    from perdure._runtime.redaction import RedactingFilter, is_telling, looks_secret, redact, redact_value
    from perdure._runtime.report import RestorePlan, RestoreReport
    from perdure._runtime.request import KeptRequest
    from perdure._runtime.restore import Restored, last_report
    from perdure._runtime.running import Command
    from perdure._runtime.runtimes import Runtime, runtime, runtime_of
    from perdure._runtime.saved import Cut
    from perdure._runtime.secrets import Secret
    from perdure._runtime.service import Service, ServiceState
    from perdure._runtime.sessions import SessionPlace
    from perdure._runtime.shell import CommandResult, Shell, exit_code
    from perdure._runtime.sqlite import SqliteOutcome, SqliteResult, SqliteSession
    from perdure._runtime.tidying import keys_of_cuts, tidy_cuts
    from perdure._runtime.unit_types import Place, UnitType
    from perdure._runtime.unit_types import register as register_unit_type
    from perdure._runtime.units import Record, Unit
    from perdure._runtime.verdicts import ending
    from perdure._runtime.workspace import Workspace, WorkspaceCut
    from perdure._runtime.world import come_back

_HOMES = {
    "bundles": ("Exported", "Imported", "bring_in", "export"),
    "conformance": ("check_unit_type",),
    "context": ("Context",),
    "contexts": ("context_of",),
    "continuity": ("Continuity",),
    "credentials": ("Token",),
    "faces": ("awaited_types",),
    "files": (
        "KeptFile",
        "KeptListener",
        "KeptPipe",
        "KeptSocket",
    ),
    "environment": ("Rules",),
    "fingerprints": (
        "Finding",
        "Fingerprint",
    ),
    "kept": ("Kept", "end_keeper", "kept_for"),
    "kinds": (
        "HttpSession",
        "KeptWorkspace",
        "QueuedRequest",
        "RateLimits",
        "RequestQueue",
    ),
    "output": ("Output",),
    "ready": (
        "Ready",
        "command",
        "http",
        "log_line",
        "port",
    ),
    "plan": ("plan_for",),
    "postgres": ("PostgresSession", "StatementOutcome", "open_postgres"),
    "redaction": (
        "RedactingFilter",
        "is_telling",
        "looks_secret",
        "redact",
        "redact_value",
    ),
    "report": (
        "RestorePlan",
        "RestoreReport",
    ),
    "request": ("KeptRequest",),
    "restore": (
        "Restored",
        "last_report",
    ),
    "runtimes": (
        "Runtime",
        "runtime",
        "runtime_of",
    ),
    "saved": ("Cut",),
    "secrets": ("Secret",),
    "service": (
        "Service",
        "ServiceState",
    ),
    "sessions": ("SessionPlace",),
    "sqlite": ("SqliteOutcome", "SqliteResult", "SqliteSession"),
    "shell": (
        "CommandResult",
        "Shell",
        "exit_code",
    ),
    "tidying": ("keys_of_cuts", "tidy_cuts"),
    "unit_types": (
        "Place",
        "UnitType",
        "register as register_unit_type",
    ),
    "units": (
        "Record",
        "Unit",
    ),
    "verdicts": ("ending",),
    "running": ("Command",),
    "world": ("come_back",),
    "workspace": (
        "Workspace",
        "WorkspaceCut",
    ),
}
_HOME_OF = {
    name.rpartition(" ")[2]: (module, name.partition(" ")[0]) for module, names in _HOMES.items() for name in names
}

__all__ = [
    "Command",
    "CommandResult",
    "Context",
    "Continuity",
    "Cut",
    "Exported",
    "Finding",
    "Fingerprint",
    "HttpSession",
    "Imported",
    "Kept",
    "KeptFile",
    "KeptListener",
    "KeptPipe",
    "KeptRequest",
    "KeptSocket",
    "KeptWorkspace",
    "Output",
    "Place",
    "PostgresSession",
    "QueuedRequest",
    "RateLimits",
    "Ready",
    "Record",
    "RedactingFilter",
    "RequestQueue",
    "RestorePlan",
    "RestoreReport",
    "Restored",
    "Rules",
    "Runtime",
    "Secret",
    "Service",
    "ServiceState",
    "SessionPlace",
    "Shell",
    "SqliteOutcome",
    "SqliteResult",
    "SqliteSession",
    "StatementOutcome",
    "Token",
    "Unit",
    "UnitType",
    "Workspace",
    "WorkspaceCut",
    "awaited_types",
    "bring_in",
    "check_unit_type",
    "checkup",
    "come_back",
    "command",
    "context_of",
    "end_keeper",
    "ending",
    "exit_code",
    "export",
    "http",
    "is_telling",
    "keeping",
    "kept_for",
    "keys_of_cuts",
    "last_report",
    "log_line",
    "looks_secret",
    "open_postgres",
    "plan_for",
    "port",
    "redact",
    "redact_value",
    "register_unit_type",
    "running",
    "runtime",
    "runtime_of",
    "tidy_cuts",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _HOME_OF[name]
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), inside)
    return value
