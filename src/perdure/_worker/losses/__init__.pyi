"""Find dead, silent, stuck or overdue attempts, and free their leases.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._worker.losses.deadlines import Deadlines
from perdure._worker.losses.reaper import Peer, Reaper
from perdure._worker.losses.stalls import Stalls
__all__ = [
    "Deadlines",
    "Peer",
    "Reaper",
    "Stalls",
]
