"""Parse arguments: JSON, durations, moments, key=value, the id of a task.

Each parser is the `type=` of a click option. It raises a usage error that says what is wrong and where.
"""

from __future__ import annotations

import json
import re
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


_PLAIN = re.compile(r"[\w.,:;!? /+-]{1,60}")


def json_value(text: str) -> Any:
    """Parse JSON: the text itself, `@file`, or `-` for standard input."""
    content, where = _content(text)
    try:
        return parse_json(content)
    except ValueError as problem:
        raise click.BadParameter(f"{where} is not JSON: {problem}{_if_a_word(content)}") from None


def _if_a_word(content: str | bytes) -> str:
    """The advice to quote a plain text: most values that are not JSON are texts."""
    text = content if isinstance(content, str) else ""
    return f"; a text needs its own quotes: '{json.dumps(text, ensure_ascii=False)}'" if _PLAIN.fullmatch(text) else ""


def json_object(text: str) -> dict[str, Any]:
    """Like `json_value`, but the value must be an object."""
    found = json_value(text)
    if not isinstance(found, dict):
        raise click.BadParameter("this must be a JSON object, such as '{\"approved\": true}'")
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
    """Parse JSON strictly.

    Raises:
        ValueError: the message says what is wrong and at which line and column.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise ValueError(f"{what} at line {error.lineno} column {error.colno} (character {error.pos})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise ValueError("the nesting is too deep") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no number {name}")


def json_option(*names: str, help: str, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that takes JSON; its help shows the three ways to give it."""
    how = {"type": json_value, "metavar": "JSON|@FILE|-", **how}
    return click.option(*names, help=help, **how)


# ── key=value ────────────────────────────────────────────────────────────────────────────────────


def pair(text: str) -> tuple[str, str]:
    """Parse `key=value`; the command parses the value."""
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.BadParameter(f"{text!r} is not of the form key=value")
    return key, value


def pairs_option(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, type=pair, multiple=True, metavar="KEY=VALUE", help=help)


def patch_of(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The pairs of `--set key=value …`: a value is JSON, or else text."""
    return {key: json_or_text(text) for key, text in pairs}


def json_or_text(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def length(text: str) -> timedelta:
    """Parse a duration: 500ms, 30s, 10m, 1h30m, 2d."""
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
    """Parse a duration before now, or a moment in ISO 8601, which is in UTC unless it has an offset."""
    found = parse_duration(text)
    if found is not None:
        return found
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a duration (7d) nor a moment (2026-03-01T12:00Z)") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# ── the task a command is about ──────────────────────────────────────────────────────────────────


def id_argument(
    name: str = "id", metavar: str = "ID", *, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The id of a task; the shell completes the ids in the store."""
    return click.argument(name, metavar=metavar, required=required, shell_complete=_known_ids)


def _known_ids(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from perdure._ground.bridge import drive

    try:
        found = drive(context.find_root().obj.tasks.list(limit=1000))
    except PerdureError:  # complete nothing; the command itself reports the error
        return []
    return [CompletionItem(record.id, help=record.status) for record in found if record.id.startswith(begun)]
