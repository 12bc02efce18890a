"""Requests to addresses chosen by others: only to the public internet, only to the address that was checked.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._ground.reach.addresses import is_allowed, is_own, why_refused
from perdure._ground.reach.operator_settings import operator_rules
from perdure._ground.reach.sender import Reply, Sender
from perdure._ground.reach.webhook_signatures import is_signed, key_of, new_secret, sign
from perdure._ground.reach.web_address import Rules, WebAddress, read_address
__all__ = [
    "is_allowed",
    "is_own",
    "why_refused",
    "operator_rules",
    "Reply",
    "Sender",
    "is_signed",
    "key_of",
    "new_secret",
    "sign",
    "Rules",
    "WebAddress",
    "read_address",
]
