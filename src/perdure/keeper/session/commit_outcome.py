"""How a transaction ended, as the processes that hold sessions tell it."""

from __future__ import annotations

COMMITTED, ROLLED_BACK, UNCERTAIN = "committed", "rolled back", "uncertain"
