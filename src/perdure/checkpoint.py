"""Inside a durable function: begin at the last checkpoint instead of replaying from the start.

state = await checkpoint.last({"page": 0})
await checkpoint.save(state)
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.progress.checkpoints": ("last", "save"),
    },
)
