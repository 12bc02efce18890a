"""Layers of a model's memory."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "continuity": ("ContinuityLayer",),
        "plan": ("Item", "PlanLayer"),
        "procedures": ("Procedure", "ProcedureLayer", "ProcedureStep", "When", "publish", "published"),
        "task_state": ("DurableTaskState",),
        "thread": ("Remembrance", "ThreadMemory"),
    },
)
