"""Checks that any worker can make for `pause.poll`, without replaying the function.

The same as perdure.checks. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"perdure.checks": ("Described", "command", "file", "url")})
