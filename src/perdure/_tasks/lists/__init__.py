"""Pages, counts and changes of tasks: rows only, never checkpoints or states."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "changes": ("read_changes",),
        "counts": ("count", "read_facets"),
        "family": ("read_family",),
        "pages": ("every_row", "read_page"),
        "summaries": ("summaries_of",),
    },
)
