"""Count the distributions that `pip install perdure` installs, by their own metadata."""

from __future__ import annotations

import ast
import operator
import os
import platform
import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def core_install(name: str) -> set[str]:
    """The distribution and all that it needs on this machine, without extras."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        name = re.sub(r"[-_.]+", "-", ahead.pop()).lower()
        if name not in found:
            found.add(name)
            ahead += _needs(name)
    return found


def _needs(name: str) -> list[str]:
    try:
        stated = requires(name) or []
    except PackageNotFoundError:
        return []
    needs = []
    for requirement in stated:
        what, _, marker = requirement.partition(";")
        match = _NAME.match(what)
        if match is not None and (not marker.strip() or applies(marker)):
            needs.append(match[0])
    return needs


def applies(marker: str) -> bool:
    """True if an environment marker applies here; markers use Python syntax."""
    here = {
        "extra": "",
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "python_full_version": platform.python_version(),
        "platform_python_implementation": platform.python_implementation(),
        "implementation_name": sys.implementation.name,
        "sys_platform": sys.platform,
        "platform_system": platform.system(),
        "platform_machine": platform.machine(),
        "os_name": os.name,
    }
    return _holds(ast.parse(marker.strip(), mode="eval").body, here)


def _holds(node: ast.expr, here: dict[str, str]) -> bool:
    if isinstance(node, ast.BoolOp):
        parts = [_holds(value, here) for value in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _text(node.left, here), _text(node.comparators[0], here)
        if _is_version(left) and _is_version(right):
            return _OPERATORS[type(node.ops[0])](_version(left), _version(right))
        return _OPERATORS[type(node.ops[0])](left, right)
    raise ValueError(f"a marker this cannot read: {ast.unparse(node)}")


def _text(node: ast.expr, here: dict[str, str]) -> str:
    return here.get(node.id, "") if isinstance(node, ast.Name) else str(ast.literal_eval(node))


def _is_version(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)*", text) is not None


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
