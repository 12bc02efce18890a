"""Shells."""

from perdure.keeper.kinds import Kind
from perdure.keeper.terminals import Terminal

KIND = Kind("shell", Terminal)
