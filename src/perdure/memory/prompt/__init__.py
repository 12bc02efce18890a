"""The context for a model: running layers, budgets, tokens, redaction."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "hooks": ("in_thread",),
        "redaction": ("clean",),
        "runner": ("Memory", "Note"),
        "tokens": ("cut", "estimate"),
        "tools": ("Tool", "takes"),
    },
    modules=("recall",),
)
