"""Inside a durable function: begin at the last checkpoint instead of replaying from the start.

state = await checkpoint.last({"page": 0})
await checkpoint.save(state)

Written by tools/make_doors.py from the table in checkpoint.py.
"""

from perdure._durable.progress.checkpoints import last, save
__all__ = [
    "last",
    "save",
]
