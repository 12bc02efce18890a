"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.streams": (
            "Account",
            "Marker",
            "Prefix",
            "Stream",
            "StreamPart",
            "account_of",
            "follow_stream",
            "read_stream",
            "stored_bytes",
        ),
    },
)
