"""The kinds of units a keeper holds, one file per kind."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {},
    modules=("keystrokes",),
)
