"""Pauses inside a durable function: questions, waits, polls, signals, instructions.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.pauses.instructions import instruction
from perdure._durable.pauses.questions import Open, answer_to, close_question, note_question
from perdure._durable.pauses.reasons import Approval
from perdure._durable.pauses import instructions
from perdure._durable.pauses import reasons
from perdure._durable.pauses import signal_waits
__all__ = [
    "instruction",
    "Open",
    "answer_to",
    "close_question",
    "note_question",
    "Approval",
    "instructions",
    "reasons",
    "signal_waits",
]
