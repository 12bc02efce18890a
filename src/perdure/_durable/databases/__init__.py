"""Work on the user's databases: transactions with a commit marker, SQL scripts, lost transaction blocks."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "lost_blocks": (
            "BlocksOnRecord",
            "Commit",
            "belongs_to",
            "note_commit",
            "run_again",
        ),
        "scripts": ("run_script",),
        "transactions": (
            "pg_probe",
            "transaction",
        ),
    },
)
