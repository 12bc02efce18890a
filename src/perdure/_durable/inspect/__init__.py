"""Where a task is, and which worker could carry it on. Nothing is run to find out."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "announced_functions": ("FunctionInfo", "announcement", "functions", "read_functions"),
        "open_calls": ("CallFrame",),
        "situation": (
            "HasUid",
            "Told",
            "Unfinished",
            "gather",
            "decide",
            "page_with_situations",
            "situation_by_uid",
            "situation_of",
            "situations_of",
            "unfinished",
            "why_not_at_work",
            "without_data",
        ),
        "task_account": ("TaskAccount", "account_of", "stored_bytes"),
        "task_call": ("TaskCall", "call_of_task"),
        "where_report": ("Where", "shown_arguments", "where", "who_works_on"),
    },
    modules=("task_account",),
)
