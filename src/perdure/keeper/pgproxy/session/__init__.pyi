"""What goes to the server, what goes to the client, and what is kept of a session.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.pgproxy.session.blocks import Blocks
from perdure.keeper.pgproxy.session.recipe import Entry, Recipe
from perdure.keeper.pgproxy.session.recording import RecordingSession
from perdure.keeper.pgproxy.session.session import Session
__all__ = [
    "Blocks",
    "Entry",
    "Recipe",
    "RecordingSession",
    "Session",
]
