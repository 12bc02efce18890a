"""Inside a durable function: the state that others see of its task.

Written by tools/make_doors.py from the table in state.py.
"""

from perdure._durable.progress.state_list import append
__all__ = [
    "append",
]
