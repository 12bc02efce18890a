"""The server as a process: sockets, connections with deadlines, starting and stopping. Needs uvicorn."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "access_log": ("log_to_stderr",),
        "hook_duties": ("HookDuties",),
        "listener": ("Listener", "bind", "bind_unix", "has_uvicorn", "refuse_open_door", "require_uvicorn", "serve"),
        "running_servers": ("RunningServer", "RunningServers", "Vitals"),
    },
)
