"""Why a task is, or is not, running: facts from the store, twenty rows that decide, and one file of sentences."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "facts": ("Facts", "LiveWorker", "without_data"),
        "fact_reader": ("gather",),
        "lists": ("Told", "Unfinished", "page_with_situations", "unfinished"),
        "rows": ("ROWS", "decide"),
        "situations": (
            "HasUid",
            "all_facts",
            "situation_by_uid",
            "situation_of",
            "situations_of",
            "why_not_at_work",
            "with_journal",
        ),
        "workers": ("is_live",),
    },
    modules=("texts", "ways"),
)
