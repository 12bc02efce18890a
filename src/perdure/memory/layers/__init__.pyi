"""Layers of a model's memory.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.memory.layers.continuity import ContinuityLayer
from perdure.memory.layers.plan import Item, PlanLayer
from perdure.memory.layers.procedures import Procedure, ProcedureLayer, ProcedureStep, When, publish, published
from perdure.memory.layers.task_state import DurableTaskState
from perdure.memory.layers.thread import Remembrance, ThreadMemory
__all__ = [
    "ContinuityLayer",
    "Item",
    "PlanLayer",
    "Procedure",
    "ProcedureLayer",
    "ProcedureStep",
    "When",
    "publish",
    "published",
    "DurableTaskState",
    "Remembrance",
    "ThreadMemory",
]
