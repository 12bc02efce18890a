"""Inside a durable function: lines of thought that are set aside and taken up again.

Written by tools/make_doors.py from the table in frames.py.
"""

from perdure._durable.progress.thought_frames import acknowledge, drop, push, resume
from perdure._model import Frame
__all__ = [
    "acknowledge",
    "drop",
    "push",
    "resume",
    "Frame",
]
