"""The agent's side of the keeper: finding, starting, asking and replacing it.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.keeper_client.client import Client, client_for
from perdure._runtime.keeper_client.pending_call import Ask
from perdure._runtime.keeper_client.unit_record import Record
from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_checkup
from perdure._runtime.keeper_client import keeper_control
from perdure._runtime.keeper_client import keeper_place
__all__ = [
    "Client",
    "client_for",
    "Ask",
    "Record",
    "client",
    "keeper_checkup",
    "keeper_control",
    "keeper_place",
]
