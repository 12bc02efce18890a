"""Workers: processes that carry tasks on by themselves."""

from perdure._worker.duty import Duty
from perdure._worker.worker import Worker

__all__ = ["Duty", "Worker"]
