"""The kinds of unit that need no keeper: what surrounds a process, files, workspaces, HTTP, counters, queues."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "built_in": ("BUILT_IN",),
        "http": ("HttpSession",),
        "kept": ("CONNECTIONS", "KeptHere", "all_of", "found"),
        "limits": ("RateLimits",),
        "queues": ("QueuedRequest", "RequestQueue"),
        "registry": ("register", "type_of", "unknown_kind"),
        "workspaces": ("Back", "KeptWorkspace"),
    },
)
