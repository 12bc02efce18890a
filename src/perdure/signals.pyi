"""Inside a durable function: words that were sent to its task.

order = await signals.next("order", Order)        # task.signal("order", …) sends it
goal = await instruction("in English")            # task.resume(instruction=…) changes it

Written by tools/make_doors.py from the table in signals.py.
"""

from perdure._durable.pauses.signal_waits import next
from perdure._durable.pauses.instructions import instruction
__all__ = [
    "next",
    "instruction",
]
