"""Durable functions: steps, effects, pauses, children, on every engine."""
