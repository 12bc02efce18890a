"""Pages, counts and changes of tasks: rows only, never checkpoints or states.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.lists.changes import read_changes
from perdure._tasks.lists.counts import count, read_facets
from perdure._tasks.lists.family import read_family
from perdure._tasks.lists.pages import every_row, read_page
from perdure._tasks.lists.summaries import summaries_of
__all__ = [
    "read_changes",
    "count",
    "read_facets",
    "read_family",
    "every_row",
    "read_page",
    "summaries_of",
]
