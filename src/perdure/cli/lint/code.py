"""Check the syntax of Python files for mistakes that hurt after a crash, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from perdure.cli.lint.async_code import check_async_code, dotted_name
from perdure.cli.lint.findings import Finding
from perdure.cli.lint.ids import check_task_id

_WITH_ID = {"run", "start", "open", "create", "memory", "runtime", "schedule"}
# In the body of a durable function these return another value at each replay.
_UNRECORDED = {
    "time.time": "recorded.now()",
    "time.time_ns": "recorded.now()",
    "date.today": "recorded.now()",
    "datetime.date.today": "recorded.now()",
    "datetime.now": "recorded.now()",
    "datetime.datetime.now": "recorded.now()",
    "datetime.utcnow": "recorded.now()",
    **{
        f"random.{name}": "recorded.random()"
        for name in ("random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform", "gauss")
    },
    "os.urandom": "recorded.uuid4()",
    "secrets.token_hex": "recorded.uuid4()",
    "secrets.token_urlsafe": "recorded.uuid4()",
    "uuid.uuid4": "recorded.uuid4()",
    "uuid4": "recorded.uuid4()",
}


def check_files(paths: Iterable[Path]) -> tuple[list[Finding], int]:
    """Check files and folders; returns the findings and the number of files read."""
    found: list[Finding] = []
    read = 0
    for path in _python_files(paths):
        read += 1
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        except (SyntaxError, UnicodeDecodeError, ValueError) as error:
            found.append(Finding("unreadable", str(path), f"cannot be parsed as Python: {error}", "correct it"))
            continue
        found += [one for node in ast.walk(tree) for one in _of_node(path, node)]
        found += check_async_code(path, tree)
    return found, read


def _python_files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inner = sorted(path.rglob("*.py"))
            yield from (one for one in inner if not any(part.startswith(".") for part in one.relative_to(path).parts))
        else:
            yield path


def _of_node(path: Path, node: ast.AST) -> Iterator[Finding]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _of_function(path, node)
    elif isinstance(node, ast.Call):
        yield from _of_call(path, node)


def _of_function(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted_name(call.func if call else decorator)
        if name in ("effect", "perdure.effect") and not _is_settled(node, call):
            yield Finding(
                "effect-without-key",
                f"{path}:{node.lineno}",
                f"the effect {node.name} has neither a key nor verify=: interrupted, it waits for a person",
                "send idempotency_key() to the target (keyed=True), or give verify= a function that checks the target",
            )
        if name in ("durable", "perdure.durable"):
            yield from _of_body(path, node)


def _is_settled(node: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call | None) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords} if call else {}
    verify, keyed, asked = given.get("verify"), given.get("keyed"), given.get("on_uncertain")
    if verify is not None and not (isinstance(verify, ast.Constant) and verify.value is None):
        return True
    if isinstance(keyed, ast.Constant) and keyed.value is True:
        return True
    if asked is not None:  # the author has decided
        return True
    calls = [dotted_name(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return any(name.endswith(("idempotency_key", "idempotency_headers")) for name in calls)


def _of_body(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    for inner in ast.walk(node):
        name = dotted_name(inner.func) if isinstance(inner, ast.Call) else ""
        if name in _UNRECORDED:
            yield Finding(
                "not-recorded",
                f"{path}:{inner.lineno}",  # type: ignore[attr-defined]
                f"{name}() in the durable function {node.name} returns another value when it is replayed",
                f"call {_UNRECORDED[name]}, or do it in a step",
            )


def _of_call(path: Path, node: ast.Call) -> Iterator[Finding]:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _WITH_ID:
        return
    owner = dotted_name(node.func.value)
    if not owner.endswith(("app", "tasks", "perdure", "Perdure")):
        return
    where, first = f"{path}:{node.lineno}", node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        wrong = check_task_id(first.value)
        if wrong:
            yield Finding("id", where, f"the id {first.value!r} {wrong}", 'name the work: f"invoice-{number}"')
    elif first is not None and _is_random(first):
        yield Finding(
            "id",
            where,
            "the id is random, so a restart begins a second task",
            "build the id from the subject of the task",
        )
    if node.func.attr == "create" and owner.endswith("tasks"):
        yield Finding(
            "existing-task",
            where,
            "create() fails when the task exists, as it does after a restart",
            "open() creates or attaches; look at task.created",
        )


def _is_random(node: ast.expr) -> bool:
    calls = [dotted_name(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return any(name.endswith(("uuid4", "uuid1", "token_hex", "urandom")) for name in calls)
