"""The numbers of tasks, by status, reason and every other property that a list can be filtered by."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from perdure._model import Counts, SituationKind
from perdure.types import InboxKind


class TaskCounts(Counts, frozen=True, kw_only=True):
    """How many tasks there are. If asked for: how many have each situation, and how many questions wait for a person,
    by kind."""

    situation: Mapping[SituationKind, int] | UnsetType = UNSET
    inbox: Mapping[InboxKind, int] | UnsetType = UNSET
