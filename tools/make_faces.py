"""What the makers of blocking faces share: signatures, docstrings, form."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path


def blocking(annotation: str) -> str:
    """An annotation of the async face as the blocking one has it."""
    text = annotation.replace("AbstractAsyncContextManager", "AbstractContextManager")
    text = text.replace("AsyncIterator", "Iterator")
    text = text.replace("os.PathLike", "PathLike")
    return re.sub(r"(\w+) \| Awaitable\[\1\]", r"\1", text)


def parameters(function: object, *, is_method: bool = True) -> tuple[str, str]:
    """How it is declared, and how it passes its arguments on."""
    declared, passed, keyword_only, positional_only = ["self"] if is_method else [], [], False, False
    found = list(inspect.signature(function).parameters.items())  # type: ignore[arg-type]
    for name, parameter in found[1:] if is_method else found:
        default = (
            ""
            if parameter.default is parameter.empty
            else f" = {parameter.default!r}".replace("'", '"').replace("datetime.", "").replace("typing.", "")
        )
        annotation = blocking(str(parameter.annotation))
        if positional_only and parameter.kind is not parameter.POSITIONAL_ONLY:
            declared.append("/")
        positional_only = parameter.kind is parameter.POSITIONAL_ONLY
        if parameter.kind is parameter.KEYWORD_ONLY:
            if not keyword_only:
                declared.append("*")
                keyword_only = True
            passed.append(f"{name}={name}")
        elif parameter.kind is parameter.VAR_KEYWORD:
            passed.append(f"**{name}")
        elif parameter.kind is parameter.VAR_POSITIONAL:
            passed.append(f"*{name}")
        else:
            passed.append(name)
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else stars
        declared.append(f"{stars}{name}: {annotation}{default}")
    return ", ".join(declared), ", ".join(passed)


def docstring(thing: object, indent: int = 8) -> str:
    text = inspect.getdoc(thing)
    if not text:
        return ""
    end = "\n" if "\n" in text else ""
    return textwrap.indent(f'"""{text}{end}"""', " " * indent) + "\n"


def formatted(text: str, target: Path) -> str:
    """The text as ruff would have it in that file."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(target), "-"]
    text = sorted_imports(text, target)
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SyntaxError(f"{target}: {done.stderr}")
    return done.stdout


def sorted_imports(text: str, target: Path) -> str:
    command = [sys.executable, "-m", "ruff", "check", "--fix-only", "--select", "I", "-q"]
    done = subprocess.run(
        [*command, "--stdin-filename", str(target), "-"], input=text, text=True, capture_output=True, check=False
    )
    return done.stdout
