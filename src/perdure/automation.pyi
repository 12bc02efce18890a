"""Tasks that begin by themselves: schedules, triggers, events; webhooks; state machines; the kill switch.

Written by tools/make_doors.py from the table in automation.py.
"""

from perdure._durable.automation import (
    Do,
    Events,
    IncomingEvent,
    Received,
    Reducer,
    Schedule,
    ScheduleDraft,
    Schedules,
    Tick,
    TriggerDraft,
    Triggers,
    scheduled,
)
from perdure._durable.control import KillSwitch, Switch
from perdure._model import Event, Trigger
from perdure._tasks.webhooks import Delivery, MadeWebhook, Webhook, Webhooks
__all__ = [
    "Do",
    "Events",
    "IncomingEvent",
    "Received",
    "Reducer",
    "Schedule",
    "ScheduleDraft",
    "Schedules",
    "Tick",
    "TriggerDraft",
    "Triggers",
    "scheduled",
    "KillSwitch",
    "Switch",
    "Event",
    "Trigger",
    "Delivery",
    "MadeWebhook",
    "Webhook",
    "Webhooks",
]
