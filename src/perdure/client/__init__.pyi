"""perdure behind a server: what `Perdure("https://…")` gives.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.client.app import RemotePerdure
from perdure.client.commands import finish_job, restore_plan, resume
from perdure.client.requests import address_of
from perdure.client.task import RemoteTask
from perdure.client.tasks import RemoteTasks
from perdure.client.transport import Transport
__all__ = [
    "RemotePerdure",
    "finish_job",
    "restore_plan",
    "resume",
    "address_of",
    "RemoteTask",
    "RemoteTasks",
    "Transport",
]
