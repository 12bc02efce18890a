"""Clients of the keeper: who may connect, and the messages between them.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.core.clients.connection import Connection
from perdure.keeper.core.clients.write_labels import Labels, problem_with
from perdure.keeper.core.clients import access
from perdure.keeper.core.clients import wire
__all__ = [
    "Connection",
    "Labels",
    "problem_with",
    "access",
    "wire",
]
