"""Keeping a store in order: gc, audit, doctor, key rotation, transfer to another store."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "audit": ("Audit", "export_heads", "verify"),
        "doctor": ("Finding", "examine"),
        "facts": ("StoreFacts", "store_facts"),
        "gc": ("Report", "collect", "give_back_space"),
        "rotation": ("Rotation", "keys_in_use", "rotate"),
        "steps": ("Steps", "StopUpkeep", "Tell", "UpkeepStep"),
        "task_rows": ("read_rows",),
        "transfer": ("arrival", "check_history", "dump", "leave", "payload", "rehearse", "take_in"),
    },
)
