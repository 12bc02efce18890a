"""Save the surroundings of a task; plan a restore, carry it out, report it.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.restore.continuity import Continuity
from perdure._runtime.restore.cut import Cut, Saved, from_data
from perdure._runtime.restore.report import RestorePlan, RestoreReport
from perdure._runtime.restore.restore_on_claim import come_back
from perdure._runtime.restore.restore_plan import contents_as_here, plan_for
from perdure._runtime.restore.restore_run import Restored, last_report
from perdure._runtime.restore.save import CAUSE, PART, SURROUNDINGS, home_of
__all__ = [
    "Continuity",
    "Cut",
    "Saved",
    "from_data",
    "RestorePlan",
    "RestoreReport",
    "come_back",
    "contents_as_here",
    "plan_for",
    "Restored",
    "last_report",
    "CAUSE",
    "PART",
    "SURROUNDINGS",
    "home_of",
]
