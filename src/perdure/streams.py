"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.inspect": ("TaskAccount", "account_of", "stored_bytes"),
        "perdure._durable.streams": ("Marker", "Prefix", "Stream", "StreamPart", "follow_stream", "read_stream"),
    },
)
