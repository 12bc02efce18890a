"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept.

Written by tools/make_doors.py from the table in streams.py.
"""

from perdure._durable.streams import (
    Account,
    Marker,
    Prefix,
    Stream,
    StreamPart,
    account_of,
    follow_stream,
    read_stream,
    stored_bytes,
)
__all__ = [
    "Account",
    "Marker",
    "Prefix",
    "Stream",
    "StreamPart",
    "account_of",
    "follow_stream",
    "read_stream",
    "stored_bytes",
]
