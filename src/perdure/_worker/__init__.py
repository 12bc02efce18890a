"""Workers: processes that carry tasks on by themselves."""

from perdure._worker.claimer import Pass
from perdure._worker.drain import drain_workers
from perdure._worker.duty import Duty
from perdure._worker.queues import Queue
from perdure._worker.registration import DRAIN
from perdure._worker.spawn_hook import Hook
from perdure._worker.worker import Settings, Worker

__all__ = ["DRAIN", "Duty", "Hook", "Pass", "Queue", "Settings", "Worker", "drain_workers"]
