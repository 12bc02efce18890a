"""Why a task is, or is not, running: facts from the store, twenty rows that decide, and one file of sentences.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.inspect.situation.facts import Facts, LiveWorker, without_data
from perdure._durable.inspect.situation.fact_reader import gather
from perdure._durable.inspect.situation.lists import Told, Unfinished, page_with_situations, unfinished
from perdure._durable.inspect.situation.rows import ROWS, decide
from perdure._durable.inspect.situation.situations import (
    HasUid,
    all_facts,
    situation_by_uid,
    situation_of,
    situations_of,
    why_not_at_work,
    with_journal,
)
from perdure._durable.inspect.situation.workers import is_live
from perdure._durable.inspect.situation import texts
from perdure._durable.inspect.situation import ways
__all__ = [
    "Facts",
    "LiveWorker",
    "without_data",
    "gather",
    "Told",
    "Unfinished",
    "page_with_situations",
    "unfinished",
    "ROWS",
    "decide",
    "HasUid",
    "all_facts",
    "situation_by_uid",
    "situation_of",
    "situations_of",
    "why_not_at_work",
    "with_journal",
    "is_live",
    "texts",
    "ways",
]
