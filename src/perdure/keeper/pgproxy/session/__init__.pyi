"""The bytes to the server and to the client, and the parts of a session that are kept.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.pgproxy.session.blocks import Blocks
from perdure.keeper.pgproxy.session.recipe import Entry, SessionRecipe
from perdure.keeper.pgproxy.session.recording_session import RecordingSession
from perdure.keeper.pgproxy.session.session import Session
__all__ = [
    "Blocks",
    "Entry",
    "SessionRecipe",
    "RecordingSession",
    "Session",
]
