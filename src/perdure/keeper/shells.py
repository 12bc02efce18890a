"""Shells."""

from perdure.keeper.kinds import Kind
from perdure.keeper.terminals import Terminal

KINDS = (Kind("shell", Terminal),)
