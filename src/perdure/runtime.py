"""Live things that outlive the agent: shells, services, files, sessions, saved and restored.

rt = await runtime.open()                         # inside a durable function; elsewhere: await app.runtime(task_id)
shell = await rt.shell("main")
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._runtime": (
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
            "open_runtime as open",
            "port",
            "redact",
            "register_unit_type",
        ),
    },
)
