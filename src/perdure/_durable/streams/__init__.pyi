"""Streams of text: written to the journal piece by piece, and continued after a crash.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.streams.stream_reader import (
    TaskAccount,
    HasTasks,
    StreamPart,
    account_of,
    follow_stream,
    partial_streams,
    read_stream,
    stored_bytes,
)
from perdure._durable.streams.stream_writer import Marker, Prefix
from perdure._durable.streams.streamed_calls import Stream, stream
from perdure._durable.streams import stream_reader
from perdure._durable.streams import streamed_calls
__all__ = [
    "TaskAccount",
    "HasTasks",
    "StreamPart",
    "account_of",
    "follow_stream",
    "partial_streams",
    "read_stream",
    "stored_bytes",
    "Marker",
    "Prefix",
    "Stream",
    "stream",
    "stream_reader",
    "streamed_calls",
]
