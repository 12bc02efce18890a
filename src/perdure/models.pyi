"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one.

Written by tools/make_doors.py from the table in models.py.
"""

from perdure._durable.models import ModelCall, Price, Savings, Spent, Usage
from perdure._model import Budget
__all__ = [
    "ModelCall",
    "Price",
    "Savings",
    "Spent",
    "Usage",
    "Budget",
]
