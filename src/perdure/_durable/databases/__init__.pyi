"""Work on the user's databases: transactions with a commit marker, SQL scripts, lost transaction blocks.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.databases.lost_blocks import BlocksOnRecord, Commit, belongs_to, note_commit, run_again
from perdure._durable.databases.scripts import run_script
from perdure._durable.databases.transactions import pg_probe, transaction
__all__ = [
    "BlocksOnRecord",
    "Commit",
    "belongs_to",
    "note_commit",
    "run_again",
    "run_script",
    "pg_probe",
    "transaction",
]
