"""Inside a durable function: the state that others see of its task."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.progress.state_list": ("append",),
    },
)
