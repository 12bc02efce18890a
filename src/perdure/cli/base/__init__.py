"""The parts that all commands share: arguments, options, the app, errors."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "arguments": (
            "id_argument",
            "json_object",
            "json_option",
            "json_or_text",
            "json_value",
            "length",
            "pairs_option",
            "parse_json",
            "patch_of",
            "since",
        ),
        "completion": ("complete",),
        "command": ("Verb", "VerbGroup", "root"),
        "decisions": ("answer_decided",),
        "invocation": ("Invocation", "tell_warnings_safely"),
        "app_import": ("load_app", "load_function"),
    },
    modules=("error_output",),
)
