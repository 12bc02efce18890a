"""Shared parts of the processes that hold one database session."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "call_ledger": ("StatementCall", "LONGEST_ANSWER", "Ledger", "Noted", "digest_of"),
        "commit_outcome": ("COMMITTED", "ROLLED_BACK", "UNCERTAIN"),
        "holder": ("forget_passwords", "hold_lock", "listen", "read_config", "tell_starter", "wipe"),
    },
    modules=("commit_outcome", "hold_clock"),
)
