"""The live runtime of the plain durable function that is running."""

from typing import Any


def open_runtime() -> Any:
    """The task's runtime. It and what it gives have the methods of the async face, without await."""
    from perdure._durable import Waits
    from perdure._ground.bridge import Blocking
    from perdure._runtime import awaited_types
    from perdure._runtime import open_runtime as open_async

    waits = Waits()
    return Blocking(waits.run(open_async()), waits, awaited_types())
