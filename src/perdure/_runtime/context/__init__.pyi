"""The surroundings of a task in this process: environment, units, fingerprints.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.context.context import Context, Held, context_of, keep_context, narrowed
from perdure._runtime.context.fingerprints import Finding, Fingerprint, Recorded, record
from perdure._runtime.context.paths import mapped, mapping_for
from perdure._runtime.context.unit_types import Place, UnitType
from perdure._runtime.context import fingerprints
__all__ = [
    "Context",
    "Held",
    "context_of",
    "keep_context",
    "narrowed",
    "Finding",
    "Fingerprint",
    "Recorded",
    "record",
    "mapped",
    "mapping_for",
    "Place",
    "UnitType",
    "fingerprints",
]
