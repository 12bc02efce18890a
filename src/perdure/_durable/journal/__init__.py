"""Journals as they are read from the store: entries, lines, failed calls, a view for people."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "block_entries": ("BLOCK", "Block", "LOST", "UNIT", "block_of"),
        "failed_calls": ("errors_in", "note_of", "to_forget"),
        "journal_reader": (
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
        ),
        "call_view": ("CallError", "CallMark", "CallTry", "JournalCall"),
        "journal_calls": ("CallState", "MARKS"),
        "outline": ("JournalLine", "Outline"),
        "shown_values": ("shown_data", "shown_value", "without_bytes"),
        "task_journal": ("Journal", "JournalNews"),
    },
)
