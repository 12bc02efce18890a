"""A folder cut into an object store of perdure's own, and put back whole.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.workspace.contents import oid_at
from perdure._runtime.workspace.cuts import Workspace, WorkspaceCut
from perdure._runtime.workspace.folder_walk import CUTS, git_changes, git_head, walk
from perdure._runtime.workspace.objects import Objects
from perdure._runtime.workspace.pack_size import measure
from perdure._runtime.workspace import manifest
from perdure._runtime.workspace import swap
__all__ = [
    "oid_at",
    "Workspace",
    "WorkspaceCut",
    "CUTS",
    "git_changes",
    "git_head",
    "walk",
    "Objects",
    "measure",
    "manifest",
    "swap",
]
