"""The names for declarations: `@step`, `@durable`, versions."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "code_places": ("is_another",),
        "durable_decorator": ("durable",),
        "functions": ("Durable", "DurableFunction", "Options", "ToolFunction", "step"),
        "versions": (
            "PastEffect",
            "chosen_among",
            "function_for",
            "known_functions",
            "known_versions",
            "namesakes_of",
            "patched",
            "refuse_namesakes",
            "upgraded",
        ),
    },
)
