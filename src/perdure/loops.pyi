"""Inside a step: loops that go on after the last item that was marked, when a crash cut the step off.

Written by tools/make_doors.py from the table in loops.py.
"""

from perdure._durable.progress.loops import appending, batches, blocks, each, files, lines, run_script
__all__ = [
    "appending",
    "batches",
    "blocks",
    "each",
    "files",
    "lines",
    "run_script",
]
