"""The kinds of unit that come with perdure."""

from __future__ import annotations

from perdure._runtime.context import UnitType
from perdure._runtime.kinds.blobs import BlobType
from perdure._runtime.kinds.files import FileType
from perdure._runtime.kinds.http import HttpType
from perdure._runtime.kinds.kept import KeptType
from perdure._runtime.kinds.limits import RateLimitsType
from perdure._runtime.kinds.queues import QueueType
from perdure._runtime.kinds.surroundings import DirectoryType, EnvironmentType, VariablesType
from perdure._runtime.kinds.workspaces import WorkspaceType

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
