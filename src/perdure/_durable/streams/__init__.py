"""Streams of text: written to the journal piece by piece, and continued after a crash."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "stream_reader": (
            "HasTasks",
            "StreamInfo",
            "StreamPart",
            "follow_stream",
            "partial_streams",
            "list_streams",
            "read_stream",
            "row_of",
            "store_behind",
        ),
        "stream_writer": ("Marker", "Prefix"),
        "streamed_calls": ("Stream", "stream"),
    },
    modules=("stream_reader", "streamed_calls"),
)
