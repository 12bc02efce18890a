"""Layers for a model's context: what it must know after a resume, within a budget."""

from perdure.memory.adapters import FileStorage, InMemoryStorage
from perdure.memory.appstorage import AppStorage, PostgresStorage, SqliteStorage
from perdure.memory.artifacts import Artifact
from perdure.memory.continuity import ContinuityLayer
from perdure.memory.fields import EXCLUDE, PERSIST, Fields, recompute
from perdure.memory.layer import Block, Budget, Layer, LayerContext, Outcome, Scope, Slot, Timeouts, Turn
from perdure.memory.plan import Item, PlanLayer
from perdure.memory.procedures import Procedure, ProcedureLayer, ProcedureStep, When, publish, published
from perdure.memory.resumable import Verification, verify_resumable
from perdure.memory.runner import Memory, Note
from perdure.memory.storage import ScopedStorage, StorageAdapter, get_many, owner_prefix
from perdure.memory.task_state import DurableTaskState
from perdure.memory.thread import Remembrance, ThreadMemory
from perdure.memory.tokens import estimate
from perdure.memory.tools import Tool

__all__ = [
    "AppStorage",
    "Artifact",
    "Block",
    "Budget",
    "ContinuityLayer",
    "DurableTaskState",
    "EXCLUDE",
    "Fields",
    "FileStorage",
    "InMemoryStorage",
    "Item",
    "Layer",
    "LayerContext",
    "Memory",
    "Note",
    "Outcome",
    "PERSIST",
    "PlanLayer",
    "PostgresStorage",
    "Procedure",
    "ProcedureLayer",
    "ProcedureStep",
    "Remembrance",
    "Scope",
    "ScopedStorage",
    "Slot",
    "SqliteStorage",
    "StorageAdapter",
    "ThreadMemory",
    "Timeouts",
    "Tool",
    "Turn",
    "Verification",
    "When",
    "estimate",
    "get_many",
    "owner_prefix",
    "publish",
    "published",
    "recompute",
    "verify_resumable",
]
