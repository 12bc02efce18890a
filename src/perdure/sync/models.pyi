"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one.

The same as perdure.models. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in models.py.
"""

from perdure.models import Budget, ModelCall, Price, Savings, Spent, Usage
__all__ = [
    "Budget",
    "ModelCall",
    "Price",
    "Savings",
    "Spent",
    "Usage",
]
