"""Checks that any worker can make for `pause.poll`, without replaying the function.

Written by tools/make_doors.py from the table in checks.py.
"""

from perdure._tasks.pauses.checks import Described, command, file, url
__all__ = [
    "Described",
    "command",
    "file",
    "url",
]
