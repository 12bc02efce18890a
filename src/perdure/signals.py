"""Inside a durable function: words that were sent to its task.

order = await signals.next("order", Order)        # task.signal("order", …) sends it
goal = await instruction("in English")            # task.resume(instruction=…) changes it
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.pauses.signal_waits": ("next",),
        "perdure._durable.pauses.instructions": ("instruction",),
    },
)
