"""The names for declarations: `@step`, `@durable`, versions.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.declare.code_places import is_another
from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import Durable, DurableFunction, Options, ToolFunction, step
from perdure._durable.declare.versions import (
    PastEffect,
    chosen_among,
    function_for,
    known_functions,
    known_versions,
    namesakes_of,
    patched,
    refuse_namesakes,
    upgraded,
)
__all__ = [
    "is_another",
    "durable",
    "Durable",
    "DurableFunction",
    "Options",
    "ToolFunction",
    "step",
    "PastEffect",
    "chosen_among",
    "function_for",
    "known_functions",
    "known_versions",
    "namesakes_of",
    "patched",
    "refuse_namesakes",
    "upgraded",
]
