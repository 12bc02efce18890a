"""Outgoing webhooks: what is sent where, and the result. perdure/_worker sends."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "delivery": (
            "Delivery",
            "DeliveryState",
            "Message",
            "TryOutcome",
            "adding",
            "body_of_row",
            "due",
            "record_try",
        ),
        "event_catalogue": ("SENTENCES", "events_page"),
        "hook": ("DISABLED", "Facts", "HookRecord", "MadeWebhook", "NAMES", "Webhook", "disable", "wants"),
        "message": ("before_moment", "body_of", "message_id", "plain_body"),
        "retries": ("DELAYS", "delay_after", "patience_asked"),
        "webhooks": ("KeptHook", "Webhooks", "bound_to", "open_record", "put_record", "read_hooks"),
    },
)
