"""Take a task to another machine in one file.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.bundles.task_bundle import Exported, Imported, bring_in, export
from perdure._runtime.bundles.unused_cuts import keys_of_cuts, tidy_cuts
__all__ = [
    "Exported",
    "Imported",
    "bring_in",
    "export",
    "keys_of_cuts",
    "tidy_cuts",
]
