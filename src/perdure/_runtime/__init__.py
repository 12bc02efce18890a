"""Live things that outlive the agent: shells, services, files, sessions; saved, checked, and how they came back.

Each name is imported when it is first used: a program that keeps nothing live loads nothing of this.
"""

import sys

from perdure._ground.lazy_door import lazy_door
from perdure.errors import NotAllowed

if sys.platform == "win32":
    raise NotAllowed(
        "perdure's live runtime does not work on Windows: it needs Unix terminals and sockets",
        kept="everything else works: tasks, checkpoints, durable functions",
        do="run the agent in WSL to keep shells and services",
    )

__getattr__ = lazy_door(
    __name__,
    {
        "bundles": ("Exported", "Imported", "bring_in", "export", "keys_of_cuts", "tidy_cuts"),
        "command_runs": ("Command",),
        "conformance": ("check_unit_type",),
        "context": ("Context", "Finding", "Fingerprint", "Place", "UnitType", "context_of"),
        "keeper_client": ("Record",),
        "kinds": (
            "HttpSession",
            "KeptWorkspace",
            "QueuedRequest",
            "RateLimits",
            "RequestQueue",
            "register as register_unit_type",
        ),
        "restore": (
            "Continuity",
            "Cut",
            "RestorePlan",
            "RestoreReport",
            "Restored",
            "come_back",
            "last_report",
            "plan_for",
        ),
        "secrets": (
            "RedactingFilter",
            "Rules",
            "Secret",
            "Token",
            "is_telling",
            "looks_secret",
            "redact",
            "redact_value",
        ),
        "sessions": (
            "PostgresSession",
            "SessionPlace",
            "SqliteOutcome",
            "SqliteResult",
            "SqliteSession",
            "StatementOutcome",
            "open_postgres",
        ),
        "task_runtime": ("Runtime", "awaited_types", "open_runtime", "runtime_of"),
        "units": (
            "CommandEnd",
            "CommandOutput",
            "CommandResult",
            "Kept",
            "KeptCommand",
            "KeptFile",
            "KeptListener",
            "KeptPipe",
            "KeptRequest",
            "KeptSocket",
            "Output",
            "Ready",
            "Service",
            "ServiceState",
            "Shell",
            "Unit",
            "UnitAccess",
            "UnitCommand",
            "UnitOutput",
            "UnitProcess",
            "UnitRecord",
            "Units",
            "command",
            "end_keeper",
            "ending",
            "exit_code",
            "hide_mark_numbers",
            "http",
            "kept_for",
            "log_line",
            "port",
        ),
        "workspace": ("Workspace", "WorkspaceCut"),
    },
    modules=("command_runs", "keeper_client.keeper_checkup", "keeper_client.keeper_control"),
)
