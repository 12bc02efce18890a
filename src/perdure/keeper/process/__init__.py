"""Processes the keeper starts and watches: spawning, isolation, terminals, output."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "isolation": ("Isolation",),
        "output_log": (
            "OutLog",
            "Part",
            "memory_file",
        ),
        "ports": ("is_taken",),
        "processes": (
            "COOKIE",
            "OWNER",
            "is_running",
        ),
        "spawner": (
            "CannotStart",
            "Command",
            "TOKEN_FD",
            "spawn",
        ),
        "spooled_program": (
            "Spooled",
            "UNSEEN",
            "check_command",
        ),
    },
    modules=(
        "ports",
        "processes",
        "terminal_state",
    ),
)
