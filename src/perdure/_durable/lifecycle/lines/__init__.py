"""New lines of a journal: fork, rollback, carry-over and upgrade, and what each would do."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "line_carry_over": ("is_carried", "next_line"),
        "task_rollback": ("fulfil_rollback",),
        "upgrades": ("fitting_version", "function_of_task"),
    },
)
