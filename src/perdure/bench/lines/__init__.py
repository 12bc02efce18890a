"""The lines of `perdure bench`: one module for each subject that is measured."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {},
    modules=(
        "adapters",
        "checkpoints",
        "continuity",
        "functions",
        "journals",
        "lifecycles",
        "pages",
        "processes",
        "requests",
        "demo_resume",
        "sessions",
        "shells",
        "streams",
        "workers",
    ),
)
