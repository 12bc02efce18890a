"""What an exception says, for people who have nothing but its text."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    """Its message. That of a group only counts its members, so they are told after it, each with its name."""
    if not isinstance(error, BaseExceptionGroup):
        return str(error)
    members = "; ".join(name_and_message(member) for member in error.exceptions)
    return f"{error}: {members}"


def name_and_message(error: BaseException) -> str:
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
