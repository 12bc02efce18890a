"""Live streams: what changes in a namespace, what happens to one task, and how both become server-sent events.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.live.feed import Feed
from perdure.server.live.line import HEADERS, Lasting, MEDIA, OpenLine
from perdure.server.live.live import Live, Pace
from perdure.server.live.messages import Buffer, Message, sse
from perdure.server.live.task_watch import Place, TaskWatch
__all__ = [
    "Feed",
    "HEADERS",
    "Lasting",
    "MEDIA",
    "OpenLine",
    "Live",
    "Pace",
    "Buffer",
    "Message",
    "sse",
    "Place",
    "TaskWatch",
]
