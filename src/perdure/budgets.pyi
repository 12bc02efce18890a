"""Inside a durable function: spend from its task's budget, and look at what was spent.

budgets.spend(money=0.02)
budgets.check()                                   # raises BudgetExhausted when a limit is reached

Written by tools/make_doors.py from the table in budgets.py.
"""

from perdure._durable.models.budget_accounts import check, spend, spent
__all__ = [
    "check",
    "spend",
    "spent",
]
