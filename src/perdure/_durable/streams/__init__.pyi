"""Streams of text: written to the journal piece by piece, and continued after a crash.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.streams.stream_reader import (
    HasTasks,
    StreamInfo,
    StreamPart,
    follow_stream,
    partial_streams,
    list_streams,
    read_stream,
    row_of,
    store_behind,
)
from perdure._durable.streams.stream_writer import Marker, Prefix
from perdure._durable.streams.streamed_calls import Stream, stream
from perdure._durable.streams import stream_reader
from perdure._durable.streams import streamed_calls
__all__ = [
    "HasTasks",
    "StreamInfo",
    "StreamPart",
    "follow_stream",
    "partial_streams",
    "list_streams",
    "read_stream",
    "row_of",
    "store_behind",
    "Marker",
    "Prefix",
    "Stream",
    "stream",
    "stream_reader",
    "streamed_calls",
]
