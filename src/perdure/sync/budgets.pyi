"""Inside a durable function: spend from its task's budget, and look at what was spent.

The same as perdure.budgets. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in budgets.py.
"""

from perdure.budgets import check, spend, spent
__all__ = [
    "check",
    "spend",
    "spent",
]
