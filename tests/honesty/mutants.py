"""perdure with one rule switched off, in the agent and in every process it leads to."""

from __future__ import annotations


def apply(name: str, folder: str) -> None:
    """Switch the rule off in this process, and in those it starts."""
    if name:
        raise NotImplementedError(name, folder)
