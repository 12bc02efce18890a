"""Inside a durable function: spend from its task's budget, and look at what was spent.

budgets.spend(money=0.02)
budgets.check()                                   # raises BudgetExhausted when a limit is reached
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.models.budget_accounts": ("check", "spend", "spent"),
    },
)
