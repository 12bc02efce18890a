"""A task's own files, and commits of them."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "recorded_files": ("RecordedFile",),
        "task_files": ("Artifact",),
    },
    modules=("git_commits", "task_files"),
)
