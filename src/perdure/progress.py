"""Inside a step: mark how far it has come, so that the next attempt at it continues there.

    for page in range(progress.cursor or 0, pages):
        await copy(page)
        await progress.mark(cursor=page + 1, done=page + 1, total=pages)

`perdure.loops` does this for common loops.
"""

from typing import TYPE_CHECKING, Any

from perdure._durable import mark_progress as mark
from perdure._durable import progress_cursor

if TYPE_CHECKING:
    cursor: Any  # what the running step marked last, in this attempt or an earlier one

__all__ = ["cursor", "mark"]


def __getattr__(name: str) -> Any:
    if name == "cursor":
        return progress_cursor()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
