"""Keeping a store in order: gc, audit, doctor, key rotation, transfer to another store.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.upkeep.audit import Audit, export_heads, verify
from perdure._tasks.upkeep.doctor import Finding, examine
from perdure._tasks.upkeep.facts import StoreFacts, store_facts
from perdure._tasks.upkeep.gc import Report, collect, give_back_space
from perdure._tasks.upkeep.rotation import Rotation, keys_in_use, rotate
from perdure._tasks.upkeep.steps import Steps, StopUpkeep, Tell, UpkeepStep
from perdure._tasks.upkeep.task_rows import read_rows
from perdure._tasks.upkeep.transfer import arrival, check_history, dump, leave, payload, rehearse, take_in
__all__ = [
    "Audit",
    "export_heads",
    "verify",
    "Finding",
    "examine",
    "StoreFacts",
    "store_facts",
    "Report",
    "collect",
    "give_back_space",
    "Rotation",
    "keys_in_use",
    "rotate",
    "Steps",
    "StopUpkeep",
    "Tell",
    "UpkeepStep",
    "read_rows",
    "arrival",
    "check_history",
    "dump",
    "leave",
    "payload",
    "rehearse",
    "take_in",
]
