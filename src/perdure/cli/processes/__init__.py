"""Programs behind commands: a terminal, a supervisor, a worker, a server."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "serve_options": ("server_options",),
        "server_process": ("Serving", "ServerChoice"),
        "supervisor": ("ServerCommand", "Supervisor", "worker_argv"),
        "terminal": ("Attached",),
        "worker_process": ("work",),
    },
)
