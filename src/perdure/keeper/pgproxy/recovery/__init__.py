"""The traces that outlive the proxy, and how the next process takes the session up or finds its outcome."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "adoption": ("Adopted", "Unusable", "adopt"),
        "notebook": ("IDLE", "LARGE", "Notebook", "SENDING", "SENT", "to_json"),
        "parking": ("Parking", "parking_of"),
        "postmortem": ("Finding", "examine", "server_of"),
        "session_rebuild": ("Differs", "rebuild"),
        "trace": ("NAME", "Server", "Trace"),
        "witness": ("ONLY_NUMBER", "CommitWitness"),
    },
    modules=("postmortem",),
)
