"""Plain functions and threads: calls that block, and where their coroutines run."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "blocking_calls": ("Waits", "as_async", "as_async_pieces", "each_of", "here", "inside_of", "waited"),
        "run_on_loop": ("Aside",),
        "threads": ("refuse_lost_thread", "two_threads", "watch_coroutines_of"),
    },
    modules=("threads",),
)
