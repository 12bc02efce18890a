"""The names for declarations: `@step`, `@durable`, versions."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "functions": ("Durable", "DurableFunction", "Options", "ToolFunction", "durable", "known_functions", "step"),
        "versions": (
            "PastEffect",
            "chosen_among",
            "function_for",
            "is_another",
            "known_versions",
            "namesakes_of",
            "patched",
            "refuse_namesakes",
            "upgraded",
        ),
    },
)
