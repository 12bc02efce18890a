"""Model calls: what they use, what they cost, and the budget of a task. `perdure.model_call` declares one.

The same as perdure.models. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"perdure.models": ("ModelCall", "Price", "Savings", "Spent", "Usage", "Budget")})
