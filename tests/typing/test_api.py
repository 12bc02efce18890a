"""The public names and signatures are those of public_api.txt, in perdure and, without await, in perdure.sync."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perdure
import perdure.memory
import perdure.sync

LAW = ast.parse((Path(__file__).parent / "public_api.txt").read_text(encoding="utf-8"))
# Live things have one class for both faces; perdure.sync hands out objects whose methods wait.
LIVE = {"Shell", "Runtime", "Unit", "Secret", "Layer", "DurableTaskState", "Memory", "Block", "StorageAdapter"}
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def found_in(module: Any, name: str) -> Any:
    """A name of the face: at its root, or in the module that is named after its subject."""
    if name in module.__all__:
        return getattr(module, name)
    modules = [getattr(module, one) for one in module.__all__ if one not in ("memory", "sync", "testing")]
    homes = [one for one in [*modules, module.memory] if inspect.ismodule(one) and name in getattr(one, "__all__", ())]
    return getattr(homes[0], name) if homes else None


def promised(node: Function) -> dict[str, tuple[str, ast.expr | None]]:
    """The parameters with a name of their own: how they are given, and their default."""
    both = [*node.args.posonlyargs, *node.args.args]
    defaults = [*[None] * (len(both) - len(node.args.defaults)), *node.args.defaults]
    how = ["positional"] * len(node.args.posonlyargs) + ["either"] * len(node.args.args)
    pairs = [(one.arg, (kind, default)) for one, kind, default in zip(both, how, defaults, strict=True)]
    pairs += [
        (one.arg, ("keyword", default))
        for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    ]
    return {name: told for name, told in pairs if name != "self"}


def differences(where: str, node: Function, made: Any) -> Iterator[str]:
    parameters = inspect.signature(made).parameters
    names = promised(node)
    for name, (how, default) in names.items():
        if name not in parameters:
            yield f"{where} has no {name}"
            continue
        parameter = parameters[name]
        if KINDS.get(parameter.kind) != how:
            yield f"{where}: {name} is given another way"
        if default is not None and parameter.default is parameter.empty:
            yield f"{where}: {name} has no default"
        if isinstance(default, ast.Constant) and default.value is not ... and parameter.default != default.value:
            yield f"{where}: {name} is {parameter.default!r} by default"
    for name, parameter in parameters.items():
        if name not in {*names, "self"} and parameter.default is parameter.empty and parameter.kind in KINDS:
            yield f"{where} also needs {name}"


def gives_awaitable(made: Any, module: Any) -> bool:
    """True if it gives an object that may be awaited, and need not be: a draft."""
    given = getattr(made, "__annotations__", {}).get("return")
    return isinstance(given, str) and hasattr(found_in(module, given), "__await__")


def functions() -> Iterator[tuple[str, str, Function]]:
    for node in LAW.body:
        if isinstance(node, Function) and (node.args.kwonlyargs or not node.decorator_list):
            yield "", node.name, node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, Function):
                    yield node.name, member.name, member


@pytest.mark.req("R147")
@pytest.mark.parametrize("module", [perdure, perdure.sync], ids=["async", "blocking"])
def test_every_promised_signature_is_kept(module: Any) -> None:
    wrong: list[str] = []
    for home, name, node in functions():
        if module is perdure.sync and home in LIVE:
            continue
        called = name.replace("__a", "__") if module is perdure.sync else name
        owner = found_in(module, home) if home else module
        # One is made by calling its class, however that does it.
        made = owner if name == "__init__" else getattr(owner, called, None) if home else found_in(module, called)
        if made is None:
            wrong.append(f"{home} {called} is missing")
            continue
        wrong += differences(f"{home} {called}", node, made)
        is_awaited = isinstance(node, ast.AsyncFunctionDef) and module is perdure
        if (inspect.iscoroutinefunction(inspect.unwrap(made)) or gives_awaitable(made, module)) != is_awaited:
            wrong.append(f"{home} {called} is {'not ' if is_awaited else ''}to be awaited")
    assert wrong == []


@pytest.mark.req("R147")
def test_every_promised_name_is_there() -> None:
    classes = [node.name for node in LAW.body if isinstance(node, ast.ClassDef)]
    named = "Config Page Pause Progress Attempt ToolCall Change Event Inbox ScheduleDraft Ready Service PostgresSession"
    more = "SqliteSession KeptFile KeptListener KeptRequest Fingerprint Cut RestorePlan Restored Verdict CommandResult"
    wanted = [
        *classes,
        *named.split(),
        *more.split(),
        "Output",
        "DID_NOT_HAPPEN",
        "UNKNOWN",
        "Status",
        "Reason",
        "Level",
    ]
    assert [name for name in wanted if found_in(perdure, name) is None] == []


@pytest.mark.req("R147")
def test_every_promised_attribute_is_there() -> None:
    missing = []
    for node in LAW.body:
        if not isinstance(node, ast.ClassDef):
            continue
        made = found_in(perdure, node.name)
        source = inspect.getsource(made)
        told = {name for base in getattr(made, "__mro__", ()) for name in getattr(base, "__annotations__", {})}
        for member in node.body:
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                name = member.target.id
                if not hasattr(made, name) and name not in told and f"self.{name}" not in source:
                    missing.append(f"{node.name}.{name}")
    assert missing == []
