"""What a task leaves behind: checkpoints, the journal, events, frames and units, and changes between two states.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._model.records.checkpoint import Checkpoint
__all__ = [
    "Checkpoint",
]
