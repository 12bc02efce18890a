"""Work on the user's databases: transactions with a commit marker, lost transaction blocks.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.databases.commit_markers import SQLITES, driver_of, psycopg_rows, refuse_our_store, sqlite_rows
from perdure._durable.databases.lost_blocks import BlocksOnRecord, Commit, belongs_to, note_commit, run_again
from perdure._durable.databases.transactions import pg_probe, transaction
__all__ = [
    "SQLITES",
    "driver_of",
    "psycopg_rows",
    "refuse_our_store",
    "sqlite_rows",
    "BlocksOnRecord",
    "Commit",
    "belongs_to",
    "note_commit",
    "run_again",
    "pg_probe",
    "transaction",
]
