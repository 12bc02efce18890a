"""Programs behind commands: a terminal, a supervisor, a worker."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "supervisor": ("Supervisor", "worker_argv"),
        "terminal": ("Attached",),
        "worker_process": ("work",),
    },
)
