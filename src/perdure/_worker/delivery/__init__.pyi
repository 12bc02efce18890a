"""Deliver events to handlers and webhooks.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._worker.delivery.deliveries import Deliveries
from perdure._worker.delivery.webhooks import WebhookDuty, sender_of
__all__ = [
    "Deliveries",
    "WebhookDuty",
    "sender_of",
]
