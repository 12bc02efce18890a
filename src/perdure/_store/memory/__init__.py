"""The engine without a disk: the oracle of the others, and the store of `perdure.testing`."""

from perdure._store.memory.engine import MemoryEngine

__all__ = ["MemoryEngine"]
