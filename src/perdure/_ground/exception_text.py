"""The text of an exception, for people who have nothing else."""

from __future__ import annotations

import re

_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # of a line in a repr; not an escaped backslash before an n


def message_of(error: BaseException) -> str:
    """Its message. That of a group only counts its members, so they are told after it, each with its name."""
    if not isinstance(error, BaseExceptionGroup):
        return str(error)
    members = "; ".join(name_and_message(member) for member in error.exceptions)
    return f"{error}: {members}"


def name_and_message(error: BaseException) -> str:
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def in_one_line(text: str) -> str:
    """A text for a place that has one line: its lines, divided by semicolons, without the spaces that align them."""
    return "; ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def without_breaks(shown: str) -> str:
    """A value as `repr` tells it, with each line break as one sign that a person can read."""
    return _BREAK.sub(lambda found: found[1] + "⏎", shown) if "\\n" in shown else shown


def printable(text: str) -> str:
    """A text that cannot act on a terminal: unprintable characters are escaped. Line breaks stay."""
    if text.isprintable():
        return text
    return "".join(found if found.isprintable() or found == "\n" else repr(found)[1:-1] for found in text)
