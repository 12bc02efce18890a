"""Inside a step that is a plain `def`: how far it has come. The same as perdure.progress, without await."""

from typing import TYPE_CHECKING, Any

from perdure._durable import plain_mark as mark
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
