"""The keeper's own parts: wire, connections, access, records, units, handlers."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "access": ("peer_of",),
        "anchor_client": (
            "AnchorGone",
            "Anchored",
            "Exit",
            "NotHeld",
        ),
        "channel": (
            "Channel",
            "ChannelRefused",
            "TOKEN_FD",
        ),
        "connection": ("Connection",),
        "file_bells": ("Bells",),
        "finished_tasks": ("Finished",),
        "handlers": (
            "IN_EVERY_VERSION",
            "QUESTIONS",
        ),
        "home": ("Home",),
        "limits": ("Limits",),
        "listener": ("Door",),
        "records": ("Records",),
        "unit_kinds": (
            "Answer",
            "Call",
            "Caller",
            "Gone",
            "Held",
            "KeeperCore",
            "Kind",
            "Refused",
            "Soon",
            "Verb",
            "all_kinds",
        ),
        "units": (
            "Registry",
            "Unit",
            "is_uid",
            "shortened",
        ),
        "wire": (
            "AT_ONCE",
            "BadFrame",
            "Decoder",
            "Message",
            "News",
            "REAL_URL",
            "Refusal",
            "Reply",
            "Request",
            "VERSIONS",
            "encode",
            "receive",
            "send",
        ),
    },
    modules=(
        "access",
        "log",
        "records",
        "untrusted",
        "wire",
    ),
)
