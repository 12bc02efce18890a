"""Requests to addresses chosen by others: only to the public internet, only to the address that was checked."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "addresses": ("is_allowed", "is_own", "why_refused"),
        "operator_settings": ("operator_rules",),
        "sender": ("Reply", "Sender"),
        "webhook_signatures": ("is_signed", "key_of", "new_secret", "sign"),
        "web_address": ("Rules", "WebAddress", "read_address"),
    },
)
