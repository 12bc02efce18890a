"""Write the templates of a script as JSX, so that a type checker reads them.

    html`<${Chip} kind=${kind} />`      (<Chip kind={kind} />)
    html`<p class="a ${b}">x${y}<//>`   (<p class={`a ${b}`}>{"x"}{y}</p>)

Every line stays where it is, so that what the checker finds is at its line of the source.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_$][\w$.]*$")
_BEFORE_REGEX = re.compile(r"(?:^|[=(,:;!&|?{}\[+\-*%~^<>]|=>|\breturn|\btypeof|\bcase)\s*$")


@dataclass(frozen=True)
class Hole:
    """An expression inside a template, already written as JSX."""

    code: str


Part = str | Hole


def as_jsx(source: str) -> str:
    """A script whose html`…` templates are JSX."""
    return _code(source, 0)[0]


def _code(text: str, at: int, stop: str = "") -> tuple[str, int]:
    """JavaScript from a place to an unmatched `stop`, and where that is."""
    out: list[str] = []
    depth = 0
    while at < len(text):
        char = text[at]
        if stop and char == stop and depth == 0:
            break
        if text.startswith("//", at):
            end = _or_end(text.find("\n", at), text)
        elif text.startswith("/*", at):
            end = text.index("*/", at) + 2
        elif char in "'\"":
            end = _after_quote(text, at)
        elif text.startswith("html`", at) and not re.search(r"[\w$.]$", text[:at]):
            parts, at = _template(text, at + len("html`"))
            out.append(f"({Jsx(parts).written()})")
            continue
        elif char == "`":
            parts, at = _template(text, at + 1)
            out.append(_literal(parts))
            continue
        elif char == "/" and _BEFORE_REGEX.search("".join(out)[-40:]):
            end = _after_regex(text, at)
        else:
            depth += (char in "({[") - (char in ")}]")
            end = at + 1
        out.append(text[at:end])
        at = end
    return "".join(out), at


def _or_end(found: int, text: str) -> int:
    return len(text) if found < 0 else found


def _after_quote(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _after_regex(text: str, at: int) -> int:
    in_class = False
    at += 1
    while text[at] != "/" or in_class:
        in_class = text[at] == "[" or (in_class and text[at] != "]")
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _template(text: str, at: int) -> tuple[list[Part], int]:
    """The texts and holes of a template, and the place after its end."""
    parts: list[Part] = []
    begin = at
    while text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            code, end = _code(text, at + 2, "}")
            parts += [text[begin:at], Hole(code)]
            at = begin = end + 1
        else:
            at += 1
    return [*parts, text[begin:at]], at + 1


def _literal(parts: list[Part]) -> str:
    return "`" + "".join(part if isinstance(part, str) else f"${{{part.code}}}" for part in parts) + "`"


class Jsx:
    """One template, read tag by tag."""

    def __init__(self, parts: list[Part]) -> None:
        # One character stands for each hole, so that tags can be read as text.
        self._holes = [part for part in parts if isinstance(part, Hole)]
        numbers = iter(range(len(self._holes)))
        self._text = "".join(part if isinstance(part, str) else chr(0xE000 + next(numbers)) for part in parts)
        self._open: list[str] = []

    def written(self) -> str:
        out: list[str] = []
        for piece in re.split(r"(<!--.*?-->|<(?:\"[^\"]*\"|'[^']*'|[^\"'>])*>)", self._text, flags=re.DOTALL):
            if piece.startswith("<!--"):
                out.append("\n" * piece.count("\n"))
            elif piece.startswith("</"):
                out.append(f"</{self._open.pop()}>" + "\n" * piece.count("\n"))
            elif piece.startswith("<"):
                out.append(self._tag(piece))
            else:
                out.append(self._words(piece))
        return f"<>{''.join(out)}</>"

    def _hole(self, char: str) -> str | None:
        return self._holes[ord(char) - 0xE000].code if "\ue000" <= char < "\uf000" else None

    def _words(self, text: str) -> str:
        """What stands between two tags."""
        out = []
        for piece in re.split(r"([\ue000-\uefff]|\n)", text):
            if piece == "\n" or not piece.strip():
                out.append(piece)
            elif (code := self._hole(piece)) is not None:
                out.append(f"{{{code}}}")
            else:
                out.append(f"{{{json.dumps(piece)}}}")
        return "".join(out)

    def _tag(self, text: str) -> str:
        is_closed = text.endswith("/>")
        inner = text[1 : -2 if is_closed else -1]
        found = re.match(r"[\ue000-\uefff]|[\w-]+", inner)
        assert found is not None, text
        name, more = found[0], ""
        code = self._hole(name)
        if code is not None and _NAME.fullmatch(code):
            name = code
        elif code is not None:
            name, more = "AnyTag", f" is={{{code}}}"
        if not is_closed:
            self._open.append(name)
        return f"<{name}{more}{self._attributes(inner[found.end() :])}{'/' if is_closed else ''}>"

    def _attributes(self, text: str) -> str:
        text = re.sub(r"\.\.\.([\ue000-\uefff])", lambda found: f"{{...({self._hole(found[1])})}}", text)
        text = re.sub(r'="([^"]*)"', lambda found: f"={self._value(found[1])}", text)
        return re.sub(r"=([\ue000-\uefff])", lambda found: f"={{{self._hole(found[1])}}}", text)

    def _value(self, text: str) -> str:
        if not re.search(r"[\ue000-\uefff]", text):
            return f"{{{text}}}" if re.fullmatch(r"-?\d+", text) else json.dumps(text)  # tabindex="0" is a number
        inner = re.sub(r"[\ue000-\uefff]", lambda found: f"${{{self._hole(found[0])}}}", text)
        return f"{{`{inner}`}}"
