"""The kinds of unit that need no keeper: what surrounds a process, files, workspaces, HTTP, counters, queues."""

from perdure._runtime.context import UnitType, register
from perdure._runtime.kinds.blobs import BlobType
from perdure._runtime.kinds.files import FileType
from perdure._runtime.kinds.http import HttpSession, HttpType
from perdure._runtime.kinds.kept import CONNECTIONS, KeptHere, KeptType, all_of, found
from perdure._runtime.kinds.limits import RateLimits, RateLimitsType
from perdure._runtime.kinds.queues import QueuedRequest, QueueType, RequestQueue
from perdure._runtime.kinds.surroundings import DirectoryType, EnvironmentType, VariablesType
from perdure._runtime.kinds.workspaces import Back, KeptWorkspace, WorkspaceType

BUILT_IN: tuple[type[UnitType], ...] = (
    EnvironmentType,
    DirectoryType,
    VariablesType,
    WorkspaceType,
    FileType,
    HttpType,
    RateLimitsType,
    QueueType,
    BlobType,
    KeptType,
)

__all__ = [
    "BUILT_IN",
    "Back",
    "CONNECTIONS",
    "HttpSession",
    "KeptHere",
    "KeptWorkspace",
    "QueuedRequest",
    "RateLimits",
    "RequestQueue",
    "all_of",
    "found",
    "register_all",
]


def register_all() -> None:
    for unit_type in BUILT_IN:
        register(unit_type())
