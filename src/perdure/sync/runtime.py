"""Live things that outlive the agent: shells, services, files, sessions, saved and restored.

The same as perdure.runtime. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure.runtime": (
            "CommandEnd",
            "CommandOutput",
            "CommandResult",
            "Cut",
            "Fingerprint",
            "HttpSession",
            "KeptCommand",
            "KeptFile",
            "KeptListener",
            "KeptPipe",
            "KeptRequest",
            "KeptSocket",
            "Output",
            "Place",
            "PostgresSession",
            "QueuedRequest",
            "RateLimits",
            "Ready",
            "RedactingFilter",
            "RequestQueue",
            "RestorePlan",
            "RestoreReport",
            "Restored",
            "Rules",
            "Runtime",
            "Service",
            "Shell",
            "SqliteSession",
            "Token",
            "Unit",
            "UnitType",
            "http",
            "log_line",
            "port",
            "redact",
            "register_unit_type",
        ),
        "perdure.sync._live": ("open_runtime as open",),
    },
)
