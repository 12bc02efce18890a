"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one.

The same as perdure.models. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in models.py.
"""

from perdure.models import ModelCall, Price, Savings, Spent, Usage, Budget
__all__ = [
    "ModelCall",
    "Price",
    "Savings",
    "Spent",
    "Usage",
    "Budget",
]
