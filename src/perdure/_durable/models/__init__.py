"""Model calls, budgets, and the work a resumed task saved."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "budget_accounts": ("Spent", "carried", "open_account", "seal_budget", "spent_in", "original_arguments"),
        "model_decorator": ("Price", "Usage", "model_call"),
        "prompt_log": ("ModelCall", "model_calls"),
        "savings": ("Savings", "savings_in", "savings_of"),
    },
)
