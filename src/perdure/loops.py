"""Inside a step: loops that go on after the last item that was marked, when a crash cut the step off."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.progress.loops": ("appending", "batches", "blocks", "each", "files", "lines", "run_script"),
    },
)
