"""Values of durable calls: arguments, results and exceptions as bytes and back.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.values.callable_check import refuse_misfit
from perdure._durable.values.decorator_args import is_async, refuse_no_exceptions, refuse_no_function, refuse_no_name
from perdure._durable.values.schemas import arguments_schema, schema_of
from perdure._durable.values.values import (
    Signature,
    declare,
    declared_here,
    decode_error,
    encode_error,
    reader_for,
    recorded_as,
)
__all__ = [
    "refuse_misfit",
    "is_async",
    "refuse_no_exceptions",
    "refuse_no_function",
    "refuse_no_name",
    "arguments_schema",
    "schema_of",
    "Signature",
    "declare",
    "declared_here",
    "decode_error",
    "encode_error",
    "reader_for",
    "recorded_as",
]
