"""Texts for people: moments, authors, sizes, errors, and a task in one line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from perdure._ground.durations import shown_length
from perdure._ground.encoding.json_values import as_json, iso, plain
from perdure._ground.exception_text import in_one_line, without_breaks
from perdure._ground.secrets.known_secrets import redact
from perdure.cli.output.blocks import Cell, Line, Piece, line

if TYPE_CHECKING:
    from perdure._model import Pause, Progress, TaskRecord

# How many columns a value may take on one line.
_FITS = 80


def age(when: datetime | None, now: datetime) -> str:
    """`3 min 20 s ago`, `in 2 d`."""
    if when is None:
        return ""
    seconds = (now - when).total_seconds()
    if abs(seconds) < 1:
        return "just now"
    much = shown_length(timedelta(seconds=int(abs(seconds))))
    return f"{much} ago" if seconds > 0 else f"in {much}"


def moment(when: datetime | None, now: datetime) -> str:
    return "" if when is None else f"{iso(when)} ({age(when, now)})"


def clock_time(when: datetime | None) -> str:
    """A moment for a table: to the second, in UTC."""
    return "" if when is None else iso(when)[:19] + "Z"


def size(number: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000 or unit == "MB":
            break
        number = round(number / 1000, 1)  # type: ignore[assignment]
    return f"{number:g} {unit}"


def who(author: Mapping[str, Any] | None) -> str:
    """`ada on laptop (pid 812), agent coder`."""
    if not author:
        return ""
    known = {"user", "host", "pid", "agent"}
    text = f"{author.get('user', '?')} on {author.get('host', '?')} (pid {author.get('pid', '?')})"
    if author.get("agent"):
        text += f", agent {author['agent']}"
    others = {key: value for key, value in author.items() if key not in known}
    return f"{text} {short(others)}" if others else text


def short(value: Any, most: int = 120) -> str:
    """A value on one line, shortened to `most` characters."""
    text = in_one_line(value) if isinstance(value, str) else without_breaks(as_json(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def whole(value: Any, most: int | None) -> list[str]:
    """A value as JSON on several lines: one line per key, `most` lines; with `most` None, the whole value."""
    if isinstance(value, str) and "\n" in value:  # a text of several lines is printed as it is, not as JSON
        found = value.split("\n")
        return found if most is None or len(found) <= most else [*found[:most], _more(len(found) - most)]
    compact = without_breaks(as_json(value))
    if len(compact) <= _FITS:
        return [compact]
    if most is None:
        return without_breaks(as_json(value, indent=2)).split("\n")
    if isinstance(value, Mapping):
        lines = [f"{as_json(key)}: {short(item, _FITS)}" for key, item in plain(value).items()]
    elif isinstance(value, list | tuple):
        lines = [f"[{at}] {short(item, _FITS)}" for at, item in enumerate(value)]
    else:
        lines = [short(value, 10 * _FITS)]
    return lines if len(lines) <= most else [*lines[:most], _more(len(lines) - most)]


def _more(count: int) -> str:
    return f"… {count} more; --full shows all"


def error_lines(error: Any, most: int | None) -> list[str]:
    """An error as lines: type and message, the other fields of its record, the traceback."""
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return whole(plain(error), most)
    said = ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
    rest = {name: item for name, item in error.items() if name not in ("type", "message", "traceback")}
    trace = str(error.get("traceback") or "")
    return [*redact(said).split("\n"), *(whole(rest, most) if rest else []), *(trace.split("\n") if trace else [])]


def progress(found: Progress) -> str:
    parts = [found.operation]
    if found.percent is not None:
        parts.append(f"{found.percent:g} %")
    if found.done is not None:
        parts.append(f"{found.done:,} of {found.total:,}" if found.total is not None else f"{found.done:,} done")
    return ", ".join(parts)


def error_message(error: Any) -> str:
    message = error.get("message") if isinstance(error, Mapping) else None
    return redact(in_one_line(message)) if isinstance(message, str) else short(plain(error))


def standing(record: TaskRecord) -> str:
    """One line about a task, besides its status."""
    if record.pause is not None and record.is_paused:
        return f"{record.pause.reason}: {record.pause.message}{_until(record.pause)}"
    if record.status == "failed":
        return error_message(record.error)
    if record.status == "pending" and record.depends_on:
        return f"waits for {', '.join(record.depends_on)}"
    if record.progress is not None and not record.is_finished:
        return progress(record.progress)
    return record.description or record.name


def _until(pause: Pause) -> str:
    if pause.due_at is not None:
        return f" (resumes {clock_time(pause.due_at)})"
    return f" (expires {clock_time(pause.expires_at)})" if pause.expires_at is not None else ""


def task_line(record: TaskRecord, note: str = "") -> Line:
    """`refactor-auth: paused · human_approval: Waiting for review`."""
    said = note or standing(record)
    pieces: list[Piece] = [Cell(record.id, "strong"), ": ", Cell(record.status, record.status)]
    return line(*pieces, f" · {said}" if said else "")
