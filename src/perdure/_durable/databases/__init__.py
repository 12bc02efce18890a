"""Work on the user's databases: transactions with a commit marker, lost transaction blocks."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "commit_markers": ("SQLITES", "driver_of", "psycopg_rows", "refuse_our_store", "sqlite_rows"),
        "lost_blocks": ("BlocksOnRecord", "Commit", "belongs_to", "note_commit", "run_again"),
        "transactions": ("pg_probe", "transaction"),
    },
)
