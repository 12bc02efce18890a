"""Durable functions that start by themselves: schedules, triggers, reducers.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.automation.reducer import Do, Reducer
from perdure._durable.automation.schedules import (
    Schedule,
    ScheduleDraft,
    Schedules,
    Tick,
    draft,
    scheduled,
    version_of as definition_version,
)
from perdure._durable.automation.triggers import Events, IncomingEvent, Received, TriggerDraft, Triggers
from perdure._durable.automation import reducer
from perdure._durable.automation import schedules
from perdure._durable.automation import triggers
__all__ = [
    "Do",
    "Reducer",
    "Schedule",
    "ScheduleDraft",
    "Schedules",
    "Tick",
    "draft",
    "scheduled",
    "definition_version",
    "Events",
    "IncomingEvent",
    "Received",
    "TriggerDraft",
    "Triggers",
    "reducer",
    "schedules",
    "triggers",
]
