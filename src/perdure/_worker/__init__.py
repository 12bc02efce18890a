"""Workers: processes that claim tasks and carry them on."""

from perdure._worker.claims import ClaimedTask, Queue
from perdure._worker.delivery import WebhookDuty, sender_of
from perdure._worker.drain import drain_workers
from perdure._worker.duty import Duty, DutyLoop
from perdure._worker.registration import DRAIN
from perdure._worker.spawn_hook import Hook
from perdure._worker.worker import Settings, Worker
from perdure._worker.worker_records import QueueRecord, WorkerRecord, Workers, WorkerState

__all__ = [
    "DRAIN",
    "ClaimedTask",
    "Duty",
    "DutyLoop",
    "Hook",
    "Queue",
    "Settings",
    "WebhookDuty",
    "Worker",
    "QueueRecord",
    "WorkerRecord",
    "WorkerState",
    "Workers",
    "drain_workers",
    "sender_of",
]
