"""Layers of a model's memory."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "continuity": ("ContinuityLayer",),
        "layer": (
            "Block",
            "Budget",
            "Layer",
            "LayerContext",
            "OUTCOMES",
            "Outcome",
            "SCOPES",
            "Scope",
            "Slot",
            "Timeouts",
            "Turn",
            "budget_of",
            "check",
            "timeouts_of",
        ),
        "plan": (
            "Item",
            "PlanLayer",
        ),
        "procedures": (
            "Procedure",
            "ProcedureLayer",
            "ProcedureStep",
            "When",
            "publish",
            "published",
        ),
        "task_state": ("DurableTaskState",),
        "thread": (
            "Remembrance",
            "ThreadMemory",
        ),
    },
)
