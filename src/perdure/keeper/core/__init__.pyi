"""The keeper's own parts: wire, connections, access, records, units, handlers.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.core.clients.access import peer_of
from perdure.keeper.core.anchor_client import AnchorGone, Anchored, Exit, NotHeld
from perdure.keeper.core.clients.channel import Channel, ChannelRefused, TOKEN_FD
from perdure.keeper.core.clients.connection import Connection
from perdure.keeper.core.file_bells import Bells
from perdure.keeper.core.finished_tasks import Finished
from perdure.keeper.core.handlers import IN_EVERY_VERSION, QUESTIONS, who_writes
from perdure.keeper.core.home import Home
from perdure.keeper.core.limits import Limits
from perdure.keeper.core.clients.listener import Door
from perdure.keeper.core.records import Records
from perdure.keeper.core.unit_kinds import (
    Answer,
    Call,
    Caller,
    Gone,
    Held,
    KeeperCore,
    Kind,
    Refused,
    Soon,
    Verb,
    all_kinds,
)
from perdure.keeper.core.units import Registry, Unit, is_uid, shortened
from perdure.keeper.core.clients.wire import (
    AT_ONCE,
    BadFrame,
    Decoder,
    Message,
    News,
    REAL_URL,
    Refusal,
    Reply,
    Request,
    VERSIONS,
    encode,
    receive,
    send,
)
from perdure.keeper.core.clients.write_labels import Labels
from perdure.keeper.core.clients import access
from perdure.keeper.core import log
from perdure.keeper.core import records
from perdure.keeper.core import untrusted
from perdure.keeper.core.clients import wire
__all__ = [
    "peer_of",
    "AnchorGone",
    "Anchored",
    "Exit",
    "NotHeld",
    "Channel",
    "ChannelRefused",
    "TOKEN_FD",
    "Connection",
    "Bells",
    "Finished",
    "IN_EVERY_VERSION",
    "QUESTIONS",
    "who_writes",
    "Home",
    "Limits",
    "Door",
    "Records",
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
    "Registry",
    "Unit",
    "is_uid",
    "shortened",
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
    "Labels",
    "access",
    "log",
    "records",
    "untrusted",
    "wire",
]
