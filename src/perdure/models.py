"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.models": ("ModelCall", "Price", "Savings", "Spent", "Usage"),
        "perdure._model": ("Budget",),
    },
)
