"""Inside a durable function: the time and chance, drawn once and the same in every replay.

The same as perdure.recorded. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__, {"perdure.recorded": ("bind", "ReplayFilter", "get_logger", "is_replaying", "now", "random", "uuid4")}
)
