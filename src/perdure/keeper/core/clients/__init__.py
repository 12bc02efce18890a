"""Clients of the keeper: who may connect, and the messages between them."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "connection": ("Connection",),
        "write_labels": ("Labels", "problem_with"),
    },
    modules=("access", "wire"),
)
