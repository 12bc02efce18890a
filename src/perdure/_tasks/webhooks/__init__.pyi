"""Outgoing webhooks: what is sent where, and the result. perdure/_worker sends.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.webhooks.delivery import (
    Delivery,
    DeliveryState,
    Message,
    TryOutcome,
    adding,
    body_of_row,
    due,
    record_try,
)
from perdure._tasks.webhooks.event_catalogue import SENTENCES, events_page
from perdure._tasks.webhooks.hook import DISABLED, Facts, HookRecord, MadeWebhook, NAMES, Webhook, disable, wants
from perdure._tasks.webhooks.message import before_moment, body_of, message_id, plain_body
from perdure._tasks.webhooks.retries import DELAYS, delay_after, patience_asked
from perdure._tasks.webhooks.webhooks import KeptHook, Webhooks, bound_to, open_record, put_record, read_hooks
__all__ = [
    "Delivery",
    "DeliveryState",
    "Message",
    "TryOutcome",
    "adding",
    "body_of_row",
    "due",
    "record_try",
    "SENTENCES",
    "events_page",
    "DISABLED",
    "Facts",
    "HookRecord",
    "MadeWebhook",
    "NAMES",
    "Webhook",
    "disable",
    "wants",
    "before_moment",
    "body_of",
    "message_id",
    "plain_body",
    "DELAYS",
    "delay_after",
    "patience_asked",
    "KeptHook",
    "Webhooks",
    "bound_to",
    "open_record",
    "put_record",
    "read_hooks",
]
