"""Messages of the PostgreSQL protocol, and what can be read off them. Pure: no socket, no clock."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "calls": ("ANOTHER", "FENCED", "NOT_KEPT", "UNCERTAIN", "UNWRITTEN", "give", "note", "undo"),
        "guard": ("Guard",),
        "names": ("Names",),
        "outcome": ("Outcome", "TRANSACTION"),
        "wire": ("message",),
    },
    modules=("calls", "resync", "transaction_ends", "wire"),
)
