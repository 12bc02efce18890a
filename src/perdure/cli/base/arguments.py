"""What a person types, as values: JSON, lengths of time, moments, key=value, the id of a task.

Each reader is given to click as the `type=` of an option. It refuses what it does not understand as a usage
error that says where it stopped understanding.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import click

from perdure._ground.durations import EXAMPLES, parse_duration, problem_with_duration
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


def json_value(text: str) -> Any:
    """JSON as it stands, `@file`, or `-` for standard input."""
    content, where = _content(text)
    try:
        return parse_json(content)
    except ValueError as problem:
        raise click.BadParameter(f"{where} is not JSON: {problem}") from None


def json_object(text: str) -> dict[str, Any]:
    """The same, and it is an object."""
    found = json_value(text)
    if not isinstance(found, dict):
        raise click.BadParameter("a JSON object is needed here, such as '{\"approved\": true}'")
    return found


def _content(text: str) -> tuple[str | bytes, str]:
    if text == "-":
        return (sys.stdin.buffer.read() if sys.stdin is not None else b""), "standard input"
    if not text.startswith("@"):
        return text, "it"
    try:
        with open(text[1:], "rb") as file:
            return file.read(), text[1:]
    except OSError as error:
        raise click.BadParameter(f"cannot read {text[1:]}: {error.strerror}") from None


def parse_json(text: str | bytes) -> Any:
    """The value, by the letter of JSON.

    Raises:
        ValueError: the message says what is wrong and at which line and column.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise ValueError(f"{what} at line {error.lineno} column {error.colno} (character {error.pos})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is no UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is a number JSON does not have")


def json_option(*names: str, help: str, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that takes JSON, with the three ways to give it named in its help."""
    how = {"type": json_value, "metavar": "JSON|@FILE|-", **how}
    return click.option(*names, help=help, **how)


# ── key=value ────────────────────────────────────────────────────────────────────────────────────


def pair(text: str) -> tuple[str, str]:
    """`key=value`; what the value is, is for the command to say."""
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.BadParameter(f"{text!r} is not of the form key=value")
    return key, value


def pairs_option(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, type=pair, multiple=True, metavar="KEY=VALUE", help=help)


def patch_of(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`--set key=value …`: values are JSON where they can be read as that, else text."""
    return {key: json_or_text(text) for key, text in pairs}


def json_or_text(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def length(text: str) -> timedelta:
    """A length of time, as everywhere in perdure: 500ms, 30s, 10m, 1h30m, 2d."""
    found = parse_duration(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is {problem_with_duration(_number(text))}; write {EXAMPLES}")
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def since(text: str) -> timedelta | datetime:
    """So long ago, or a moment in ISO 8601: in UTC, as we print them, unless it says otherwise."""
    found = parse_duration(text)
    if found is not None:
        return found
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a length of time (7d) nor a moment (2026-03-01T12:00Z)"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# ── the task a command is about ──────────────────────────────────────────────────────────────────


def id_argument(
    name: str = "id", metavar: str = "ID", *, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The id of a task; the shell completes those that are in the store."""
    return click.argument(name, metavar=metavar, required=required, shell_complete=_known_ids)


def _known_ids(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from perdure._ground.bridge import drive

    try:
        found = drive(context.find_root().obj.tasks.list(limit=1000))
    except PerdureError:  # nothing to offer; the command itself will say what is wrong
        return []
    return [CompletionItem(record.id, help=record.status) for record in found if record.id.startswith(begun)]
