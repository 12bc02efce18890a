"""The names for declarations: `@step`, `@durable`, versions.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.declare.functions import (
    Durable,
    DurableFunction,
    Options,
    ToolFunction,
    durable,
    known_functions,
    step,
)
from perdure._durable.declare.versions import (
    PastEffect,
    chosen_among,
    function_for,
    is_another,
    known_versions,
    namesakes_of,
    patched,
    refuse_namesakes,
    upgraded,
)
__all__ = [
    "Durable",
    "DurableFunction",
    "Options",
    "ToolFunction",
    "durable",
    "known_functions",
    "step",
    "PastEffect",
    "chosen_among",
    "function_for",
    "is_another",
    "known_versions",
    "namesakes_of",
    "patched",
    "refuse_namesakes",
    "upgraded",
]
