"""The outcome of a transaction, as reported by the processes that hold sessions."""

from __future__ import annotations

COMMITTED, ROLLED_BACK, UNCERTAIN = "committed", "rolled back", "uncertain"
