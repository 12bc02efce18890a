"""Execution memory, on every engine."""
