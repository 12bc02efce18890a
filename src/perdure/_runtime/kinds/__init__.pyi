"""The kinds of unit that need no keeper: what surrounds a process, files, workspaces, HTTP, counters, queues.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.kinds.built_in import BUILT_IN
from perdure._runtime.kinds.http import HttpSession
from perdure._runtime.kinds.kept import CONNECTIONS, KeptHere, all_of, found
from perdure._runtime.kinds.limits import RateLimits
from perdure._runtime.kinds.queues import QueuedRequest, RequestQueue
from perdure._runtime.kinds.registry import register, type_of, unknown_kind
from perdure._runtime.kinds.workspaces import Back, KeptWorkspace
__all__ = [
    "BUILT_IN",
    "HttpSession",
    "CONNECTIONS",
    "KeptHere",
    "all_of",
    "found",
    "RateLimits",
    "QueuedRequest",
    "RequestQueue",
    "register",
    "type_of",
    "unknown_kind",
    "Back",
    "KeptWorkspace",
]
