"""Workers: processes that carry tasks on by themselves."""

from perdure._worker.claimer import Worker

__all__ = ["Worker"]
