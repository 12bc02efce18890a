"""Find dead, silent, stuck or overdue attempts, and free their leases."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "deadlines": ("Deadlines",),
        "reaper": (
            "Peer",
            "Reaper",
        ),
        "stalls": ("Stalls",),
    },
)
