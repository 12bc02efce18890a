"""Hold one SQLite connection for a task, in a process of its own.

Written by tools/make_doors.py from the table in __init__.py.
"""

__all__ = [
]
