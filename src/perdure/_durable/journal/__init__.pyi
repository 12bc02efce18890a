"""Journals as they are read from the store: entries, lines, failed calls, a view for people.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.journal.block_entries import BLOCK, Block, LOST, UNIT, block_of
from perdure._durable.journal.failed_calls import errors_in, note_of, to_forget
from perdure._durable.journal.journal_reader import (
    FAILED,
    failure_in,
    least_length,
    length_of,
    opened,
    read_answers,
    read_entries,
    read_line,
    read_readable,
    require_all_entries,
    require_line,
    without_failed,
)
from perdure._durable.journal.call_view import CallError, CallMark, CallTry, JournalCall
from perdure._durable.journal.journal_calls import CallState, MARKS
from perdure._durable.journal.outline import JournalLine, Outline
from perdure._durable.journal.shown_values import shown_data, shown_value, without_bytes
from perdure._durable.journal.task_journal import Journal, JournalNews
__all__ = [
    "BLOCK",
    "Block",
    "LOST",
    "UNIT",
    "block_of",
    "errors_in",
    "note_of",
    "to_forget",
    "FAILED",
    "failure_in",
    "least_length",
    "length_of",
    "opened",
    "read_answers",
    "read_entries",
    "read_line",
    "read_readable",
    "require_all_entries",
    "require_line",
    "without_failed",
    "CallError",
    "CallMark",
    "CallTry",
    "JournalCall",
    "CallState",
    "MARKS",
    "JournalLine",
    "Outline",
    "shown_data",
    "shown_value",
    "without_bytes",
    "Journal",
    "JournalNews",
]
