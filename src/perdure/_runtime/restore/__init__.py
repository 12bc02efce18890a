"""Save the surroundings of a task; plan a restore, carry it out, report it."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "continuity": ("Continuity",),
        "cut": ("Cut", "Saved", "from_data"),
        "report": ("RestorePlan", "RestoreReport"),
        "restore_on_claim": ("come_back",),
        "restore_plan": ("contents_as_here", "plan_for"),
        "restore_run": ("Restored", "last_report"),
        "save": ("CAUSE", "PART", "SURROUNDINGS", "home_of"),
    },
)
