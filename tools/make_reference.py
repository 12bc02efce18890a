"""Write docs/reference/api.md, errors.md and configuration.md from the code: python tools/make_reference.py"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from perdure import errors
from perdure.types import Config

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MODULES = (
    "perdure", "perdure.pause", "perdure.signals", "perdure.recorded", "perdure.effects", "perdure.checkpoint",
    "perdure.state", "perdure.progress", "perdure.loops", "perdure.streams", "perdure.models", "perdure.budgets",
    "perdure.checks", "perdure.frames", "perdure.automation", "perdure.runtime", "perdure.types", "perdure.testing",
)  # fmt: skip
VARIABLES = {
    "PERDURE_URL": "The store: a path, `sqlite:///…`, `postgresql://…`, or the address of a server "
    "(default: the nearest `.perdure/` upwards).",
    "PERDURE_KEY": "The keys that seal records: `env:NAME`, `file:/path`, `keyring:service/user` or a key, separated "
    "by commas (default: nothing is sealed).",
    "PERDURE_BLOCKED_AFTER": "Log a line of code that blocks the event loop for longer; a length of time, or `off` "
    "(default: `1s`).",
    "PERDURE_POLL_COMMANDS": "`1` lets workers run the commands of `checks.command` from any task (default: only "
    "those that their own code names).",
    "PERDURE_SECRET_COMMANDS": "Commands that `secret://command/…` may run, one a line (default: those that the "
    "program names).",
    "PERDURE_CHROMIUM": "The browser that `perdure bench --only pages` measures (default: `chromium` on the path).",
    "PERDURE_DEBUG": "Show tracebacks of the command line instead of three lines, and perdure's own frames in the "
    "tracebacks of failed tasks (default: off).",
    "PERDURE_SERVER_RATE": "Requests per second for each key (default: see `perdure serve`).",
    "PERDURE_SERVER_BURST": "Requests that a key may send at once.",
    "PERDURE_SERVER_STREAMS_PER_KEY": "Event streams that a key may hold open.",
    "PERDURE_SERVER_HOOK_PORTS": "Ports that webhooks may be sent to.",
    "PERDURE_SERVER_ALLOW_PRIVATE_HOOKS": "Let webhooks go to addresses of the private network (default: refused).",
}
SET_BY_PERDURE = {
    "PERDURE_TASK": "In commands of `perdure run`, shells and services: the id of their task.",
    "PERDURE_TASK_ID": "As `PERDURE_TASK`, where a worker calls `--spawn`.",
    "PERDURE_UNIT": "In the processes of a unit: its id.",
}
NOT_FOR_USERS = {
    "PERDURE_COMPLETE", "PERDURE_CRASH_AT", "PERDURE_SERVER_", "PERDURE_TASK_HOLDER", "PERDURE_TEST_CLOCK",
    "PERDURE_TEST_POSTGRES", "PERDURE_UNIT_OF",
}  # fmt: skip
LINE = 88  # letters that the site shows without scrolling
MADE = "Made by `tools/make_reference.py` from the code.\n"


def pages() -> dict[str, str]:
    return {"api.md": api(), "errors.md": error_page(), "configuration.md": configuration()}


def api() -> str:
    parts = ["# The Python API\n", MADE, "`perdure.sync` has the same names without `await`.\n"]
    for name in MODULES:
        module = importlib.import_module(name)
        parts.append(f"## {name}\n")
        parts.append(_first(module.__doc__) + "\n")
        for public in sorted(getattr(module, "__all__", ()), key=str.lower):
            parts += _described(public, getattr(module, public))
    return "\n".join(parts)


def _described(name: str, thing: Any) -> Iterator[str]:
    if inspect.ismodule(thing):
        return
    values = _values(thing)
    signature = _signature(thing) if callable(thing) and not values else ""
    yield f"### `{name}`\n"
    if signature:
        yield f"```text\n{_in_lines(name + signature)}\n```\n"
    if values:
        yield f"One of {', '.join(f'`{value}`' for value in values)}.\n"
    told = inspect.getdoc(thing) if inspect.isclass(thing) or inspect.isroutine(thing) else ""
    if told and not told.startswith(f"{name}("):  # the signature that dataclasses and structs give themselves
        yield _whole(told) + "\n"
    if inspect.isclass(thing):
        methods = [
            f"| `{_cell(verb + _signature(method))}` | {_cell(_first(inspect.getdoc(method)))} |"
            for verb, method in sorted(vars(thing).items())
            if not verb.startswith("_") and inspect.isfunction(method)
        ]
        if methods:
            yield "| method | |\n|---|---|\n" + "\n".join(methods) + "\n"


def _values(thing: Any) -> list[str]:
    """What a closed list of values allows."""
    if isinstance(thing, type) and issubclass(thing, Enum):
        return [f"{thing.__name__}.{member.name}" for member in thing]
    return [repr(value) for value in get_args(thing)] if get_origin(thing) is Literal else []


def _in_lines(call: str) -> str:
    """A call that is too long for one line, with a line for each parameter."""
    if len(call) <= LINE:
        return call
    depth, start, quote, parts = 0, call.index("(") + 1, "", []
    for at, letter in enumerate(call):
        if letter in "'\"" and (quote in ("", letter)):
            quote = "" if quote else letter
        elif not quote:
            depth += (letter in "([{") - (letter in ")]}")
            if (letter == "," and depth == 1) or (letter == ")" and depth == 0):
                parts.append(call[start:at].strip())
                start = at + 1
                if letter == ")":
                    break
    return "\n".join([call[: call.index("(") + 1], *(f"    {part}," for part in parts), f"){call[start:]}"])


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", re.sub(r"\(self(?:, )?", "(", text, count=1))
    text = re.sub(r"PosixPath\(('[^']*')\)", r"\1", text.replace("datetime.timedelta(", "timedelta("))
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r'(: |-> )"([^"]*)"', r"\1\2", text))
    while "<" in text.replace("<<", ""):  # functions as defaults are shown by their address
        text, number = re.subn(r"<[^<>]*>", "…", text)
        if not number:
            break
    return text


_LISTED = re.compile(r"^(\w+)\s{2,}(\S.*)$|^    (\w+): (.*)$")


def _whole(told: str) -> str:
    """A docstring in Markdown: paragraphs, with its parameters and exceptions as lists."""
    shown = []
    for paragraph in told.split("\n\n"):
        if paragraph.startswith("    "):
            shown.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
            continue
        items: list[str] = []
        lines = paragraph.splitlines()
        head = lines[0].rstrip(":") if lines[0] in ("Raises:", "Args:") else ""
        for line in lines[1:] if head else lines:
            if found := _LISTED.match(line):
                items.append(f"- `{found[1] or found[3]}`: {_first(found[2] or found[4])}")
            elif items:
                items[-1] += " " + _first(line)
        if items:
            shown += [f"{head}:"] if head else []
            shown.append("\n".join(items))
        else:
            shown.append(_first(paragraph))
    return "\n\n".join(shown)


def _first(text: str | None) -> str:
    """The first paragraph on one line, safe in Markdown."""
    paragraph = inspect.cleandoc(text or "").split("\n\n")[0]
    return (
        re.sub(r"([<>*_])", r"\\\1", " ".join(paragraph.split()))
        if "`" not in paragraph
        else " ".join(paragraph.split())
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def error_page() -> str:
    lines = ["# Errors\n", MADE]
    lines.append(
        "Every error says in three lines what happened, what was kept and what to do. The values are attributes.\n"
    )
    lines += ["| error | kind of | exit code | what it means |", "|---|---|---|---|"]
    for error in _subclasses(errors.PerdureError):
        base = error.__bases__[0].__name__
        told = _cell(_first(error.__doc__))
        lines.append(f"| `{error.__name__}` | `{base}` | {error.exit_code} | {told} |")
    return "\n".join(lines) + "\n"


def _subclasses(base: type[errors.PerdureError]) -> Iterator[type[errors.PerdureError]]:
    for found in sorted(base.__subclasses__(), key=lambda one: one.__name__):
        if found.__module__ == "perdure.errors":
            yield found
            yield from _subclasses(found)


def configuration() -> str:
    lines = ["# Configuration\n", MADE, "## Environment variables\n", "| variable | what it says |", "|---|---|"]
    lines += [f"| `{name}` | {told} |" for name, told in VARIABLES.items()]
    lines += ["\nperdure sets these for the processes it starts:\n", "| variable | what it says |", "|---|---|"]
    lines += [f"| `{name}` | {told} |" for name, told in SET_BY_PERDURE.items()]
    lines += ["\n## Config of a task\n", "`fn.options(config=Config(…))`, `app.tasks.create(id, config=Config(…))`\n"]
    lines += ["| field | default |", "|---|---|"]
    fields = zip(Config.__struct_fields__, Config.__struct_defaults__, strict=True)
    lines += [f"| `{name}` | `{default!r}` |" for name, default in fields]
    return "\n".join(lines) + "\n"


def unknown_variables() -> set[str]:
    """Variables that the source reads and no page names."""
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r"PERDURE_[A-Z_]+", source)) - set(VARIABLES) - set(SET_BY_PERDURE) - NOT_FOR_USERS


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
