"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept.

Written by tools/make_doors.py from the table in streams.py.
"""

from perdure._durable.inspect import TaskAccount, account_of, stored_bytes
from perdure._durable.streams import Marker, Prefix, Stream, StreamPart, follow_stream, read_stream
__all__ = [
    "TaskAccount",
    "account_of",
    "stored_bytes",
    "Marker",
    "Prefix",
    "Stream",
    "StreamPart",
    "follow_stream",
    "read_stream",
]
