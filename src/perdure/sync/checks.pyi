"""Checks that any worker can make for `pause.poll`, without replaying the function.

The same as perdure.checks. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in checks.py.
"""

from perdure.checks import Described, command, file, url
__all__ = [
    "Described",
    "command",
    "file",
    "url",
]
