"""Tasks that begin by themselves: schedules, triggers, events; webhooks; state machines; the kill switch."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.automation": (
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
        ),
        "perdure._durable.control": ("KillSwitch", "Switch"),
        "perdure._model": ("Event", "Trigger"),
        "perdure._tasks.webhooks": ("Delivery", "MadeWebhook", "Webhook", "Webhooks"),
    },
)
