"""The lines of `perdure bench`: one module for each subject that is measured.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.bench.lines import adapters
from perdure.bench.lines import checkpoints
from perdure.bench.lines import continuity
from perdure.bench.lines import functions
from perdure.bench.lines import journals
from perdure.bench.lines import lifecycles
from perdure.bench.lines import pages
from perdure.bench.lines import processes
from perdure.bench.lines import requests
from perdure.bench.lines import demo_resume
from perdure.bench.lines import sessions
from perdure.bench.lines import shells
from perdure.bench.lines import streams
from perdure.bench.lines import workers
__all__ = [
    "adapters",
    "checkpoints",
    "continuity",
    "functions",
    "journals",
    "lifecycles",
    "pages",
    "processes",
    "requests",
    "demo_resume",
    "sessions",
    "shells",
    "streams",
    "workers",
]
