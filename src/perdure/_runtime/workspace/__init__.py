"""A folder cut into an object store of perdure's own, and put back whole."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "contents": ("oid_at",),
        "cuts": ("Workspace", "WorkspaceCut"),
        "folder_walk": ("CUTS", "git_changes", "git_head", "walk"),
        "objects": ("Objects",),
        "pack_size": ("measure",),
    },
    modules=("manifest", "swap"),
)
