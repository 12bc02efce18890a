"""Processes the keeper starts and watches: spawning, isolation, terminals, output."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "ancestry": ("descends", "is_below", "is_dead"),
        "isolation": ("Isolation",),
        "memory_files": ("memory_file", "memory_file_with"),
        "ports": ("is_taken",),
        "processes": ("COOKIE", "OWNER", "is_running"),
        "spawner": ("CannotStart", "Program", "TOKEN_FD", "spawn"),
    },
    modules=("ports", "processes", "terminal_state"),
)
