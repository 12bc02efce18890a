"""Inside a durable function: spend from its task's budget, and look at what was spent.

The same as perdure.budgets. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"perdure.budgets": ("check", "spend", "spent")})
