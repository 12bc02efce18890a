"""Tasks that begin by themselves: schedules, triggers, events; webhooks; state machines; the kill switch.

The same as perdure.automation, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure import automation as _automation
from perdure._durable import waited
from perdure.automation import (
    Delivery,
    Do,
    Event,
    IncomingEvent,
    MadeWebhook,
    Received,
    Schedule,
    Switch,
    Tick,
    Trigger,
    Webhook,
)
from perdure.sync._calls import Reducer
from perdure.sync._faces import Events, KillSwitch, ScheduleDraft, Schedules, TriggerDraft, Triggers, Webhooks

__all__ = [
    "Delivery",
    "Do",
    "Event",
    "Events",
    "IncomingEvent",
    "KillSwitch",
    "MadeWebhook",
    "Received",
    "Reducer",
    "Schedule",
    "ScheduleDraft",
    "Schedules",
    "Switch",
    "Tick",
    "Trigger",
    "TriggerDraft",
    "Triggers",
    "Webhook",
    "Webhooks",
    "scheduled",
]


def scheduled() -> Tick | None:
    """Inside a durable function: the tick and the schedule that started it, and what the task of the tick before it
    returned.

    It is recorded, so a replay gets the same. None when the task was not started by a schedule.
    """
    return waited(_automation.scheduled())
