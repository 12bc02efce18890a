"""Model calls, budgets, and the work a resumed task saved.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.models.budget_accounts import (
    Spent,
    carried,
    open_account,
    seal_budget,
    spent_in,
    original_arguments,
)
from perdure._durable.models.model_decorator import Price, Usage, model_call
from perdure._durable.models.prompt_log import ModelCall, model_calls
from perdure._durable.models.savings import Savings, savings_in, savings_of
__all__ = [
    "Spent",
    "carried",
    "open_account",
    "seal_budget",
    "spent_in",
    "original_arguments",
    "Price",
    "Usage",
    "model_call",
    "ModelCall",
    "model_calls",
    "Savings",
    "savings_in",
    "savings_of",
]
