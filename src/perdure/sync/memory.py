"""Layers for a model's context: the facts it needs after a resume, within a token budget.

The same as perdure.memory. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure.memory": (
            "Artifact",
            "RecordedFile",
            "Block",
            "Budget",
            "Layer",
            "LayerContext",
            "Outcome",
            "Scope",
            "Slot",
            "Timeouts",
            "Turn",
            "ContinuityLayer",
            "DurableTaskState",
            "Item",
            "PlanLayer",
            "Procedure",
            "ProcedureLayer",
            "ProcedureStep",
            "Remembrance",
            "ThreadMemory",
            "When",
            "Note",
            "Tool",
            "estimate",
            "Verification",
            "EXCLUDE",
            "PERSIST",
            "AppStorage",
            "Fields",
            "FileStorage",
            "InMemoryStorage",
            "PostgresStorage",
            "ScopedStorage",
            "SqliteStorage",
            "StorageAdapter",
            "owner_prefix",
            "recompute",
        ),
        "perdure.sync._app": ("Memory",),
    },
)
