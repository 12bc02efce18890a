"""The kinds of units a keeper holds, one file per kind.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.kinds import keystrokes
__all__ = [
    "keystrokes",
]
