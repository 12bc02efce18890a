"""Messages of the PostgreSQL protocol, and what can be read off them. Pure: no socket, no clock.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.pgproxy.protocol.calls import ANOTHER, FENCED, NOT_KEPT, UNCERTAIN, UNWRITTEN, give, note, undo
from perdure.keeper.pgproxy.protocol.guard import Guard
from perdure.keeper.pgproxy.protocol.names import Names
from perdure.keeper.pgproxy.protocol.outcome import Outcome, TRANSACTION
from perdure.keeper.pgproxy.protocol.wire import message
from perdure.keeper.pgproxy.protocol import calls
from perdure.keeper.pgproxy.protocol import resync
from perdure.keeper.pgproxy.protocol import transaction_ends
from perdure.keeper.pgproxy.protocol import wire
__all__ = [
    "ANOTHER",
    "FENCED",
    "NOT_KEPT",
    "UNCERTAIN",
    "UNWRITTEN",
    "give",
    "note",
    "undo",
    "Guard",
    "Names",
    "Outcome",
    "TRANSACTION",
    "message",
    "calls",
    "resync",
    "transaction_ends",
    "wire",
]
