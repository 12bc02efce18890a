"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one.

Written by tools/make_doors.py from the table in models.py.
"""

from perdure._durable.models import Budget, ModelCall, Price, Savings, Spent, Usage
__all__ = [
    "Budget",
    "ModelCall",
    "Price",
    "Savings",
    "Spent",
    "Usage",
]
