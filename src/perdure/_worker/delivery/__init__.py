"""Deliver events to handlers and webhooks."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "deliveries": ("Deliveries",),
        "webhooks": (
            "WebhookDuty",
            "sender_of",
        ),
    },
)
