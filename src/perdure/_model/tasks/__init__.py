"""Tasks: their status and moves, lists of them, leases, budgets and dependencies."""
