"""The context for a model: running layers, budgets, tokens, redaction.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.memory.prompt.hooks import in_thread
from perdure.memory.prompt.redaction import clean
from perdure.memory.prompt.runner import Memory, Note
from perdure.memory.prompt.tokens import cut, estimate
from perdure.memory.prompt.tools import Tool, takes
from perdure.memory.prompt import recall
__all__ = [
    "in_thread",
    "clean",
    "Memory",
    "Note",
    "cut",
    "estimate",
    "Tool",
    "takes",
    "recall",
]
