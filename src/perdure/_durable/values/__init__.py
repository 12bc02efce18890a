"""Values of durable calls: arguments, results and exceptions as bytes and back."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "callable_check": ("refuse_misfit",),
        "decorator_args": ("is_async", "refuse_no_exceptions", "refuse_no_function", "refuse_no_name"),
        "schemas": (
            "arguments_schema",
            "schema_of",
        ),
        "values": (
            "Signature",
            "declare",
            "declared_here",
            "decode_error",
            "encode_error",
            "reader_for",
            "recorded_as",
        ),
    },
)
