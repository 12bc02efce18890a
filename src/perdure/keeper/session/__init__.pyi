"""Shared parts of the processes that hold one database session.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.session.call_ledger import StatementCall, LONGEST_ANSWER, Ledger, Noted, digest_of
from perdure.keeper.session.commit_outcome import COMMITTED, ROLLED_BACK, UNCERTAIN
from perdure.keeper.session.holder import forget_passwords, hold_lock, listen, read_config, tell_starter, wipe
from perdure.keeper.session import commit_outcome
from perdure.keeper.session import hold_clock
__all__ = [
    "StatementCall",
    "LONGEST_ANSWER",
    "Ledger",
    "Noted",
    "digest_of",
    "COMMITTED",
    "ROLLED_BACK",
    "UNCERTAIN",
    "forget_passwords",
    "hold_lock",
    "listen",
    "read_config",
    "tell_starter",
    "wipe",
    "commit_outcome",
    "hold_clock",
]
