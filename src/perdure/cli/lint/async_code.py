"""Find calls in async code that block its event loop, and calls in durable functions that a replay cannot repeat.

A function of the same file that is called by its name counts as a part of its caller. Steps and effects do not, since
their calls are not replayed. The check uses syntax alone, so it seldom sees a call through an object's attribute. A
worker logs the remaining ones when they happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from perdure.cli.lint.findings import Finding

Function = ast.FunctionDef | ast.AsyncFunctionDef

_RECORDED = {"step", "effect", "transaction", "model_call", "stream"}
_TO_THREAD = "await asyncio.to_thread({name}, …), or use an async library"
_BLOCKING = {
    "time.sleep": "await asyncio.sleep(…)",
    **dict.fromkeys(
        ("subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "os.system"),
        "await asyncio.create_subprocess_exec(…) in a step, or asyncio.to_thread({name}, …)",
    ),
    **dict.fromkeys(
        ("urllib.request.urlopen", "socket.create_connection", "sqlite3.connect", "psycopg.connect"), _TO_THREAD
    ),
    **dict.fromkeys(("psycopg2.connect", "pymysql.connect", "psycopg.Connection.connect"), _TO_THREAD),
    "input": "pause.input(…), which holds no process while it waits",
}
_HTTP_VERBS = {"get", "post", "put", "patch", "delete", "head", "options", "request"}
_UNREPLAYED = {
    **dict.fromkeys(("asyncio.open_connection", "asyncio.open_unix_connection"), "a socket"),
    **dict.fromkeys(("asyncio.start_server", "asyncio.start_unix_server", "socket.socket"), "a socket"),
    **dict.fromkeys(("socket.create_connection", "socket.socketpair"), "a socket"),
    **dict.fromkeys(("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"), "a child process"),
    **dict.fromkeys(("subprocess.Popen", "os.popen"), "a child process"),
    **dict.fromkeys(("threading.Thread", "asyncio.wrap_future"), "a thread"),
    **dict.fromkeys(("signal.signal",), "a signal"),
}
# Methods of an event loop, whatever its variable is named.
_OF_LOOP = {
    **dict.fromkeys(("create_connection", "create_server", "create_datagram_endpoint"), "a socket"),
    **dict.fromkeys(("sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_connect"), "a socket"),
    **dict.fromkeys(("sock_accept", "add_reader", "add_writer", "connect_read_pipe"), "a socket"),
    **dict.fromkeys(("subprocess_exec", "subprocess_shell"), "a child process"),
    **dict.fromkeys(("call_soon_threadsafe",), "a thread"),
    "add_signal_handler": "a signal",
}


def check_async_code(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """The findings in the async functions of a file, each line once."""
    module = _Module(tree)
    seen: set[tuple[str, int]] = set()
    for finding, line in [*_blocking(path, module), *_unreplayed(path, module)]:
        if (finding.rule, line) not in seen:
            seen.add((finding.rule, line))
            yield finding


def _blocking(path: Path, module: _Module) -> Iterator[tuple[Finding, int]]:
    for root in module.functions:
        if isinstance(root, ast.AsyncFunctionDef):
            for call, name in module.calls_in(root, of_steps=True):
                do = module.how_not_to_block(name)
                if do:
                    what = f"{name}() in the async function {root.name} blocks every task of its process"
                    yield Finding("blocks", f"{path}:{call.lineno}", what, do), call.lineno


def _unreplayed(path: Path, module: _Module) -> Iterator[tuple[Finding, int]]:
    for root in module.functions:
        if isinstance(root, ast.AsyncFunctionDef) and "durable" in module.decorators(root):
            for call, name in module.calls_in(root, of_steps=False):
                kind = module.kind_of_waker(name)
                if kind:
                    what = (
                        f"{name}() in the durable function {root.name} waits for {kind}, which a replay cannot repeat"
                    )
                    yield Finding("not-replayed", f"{path}:{call.lineno}", what, "do it in a step"), call.lineno


class _Module:
    """The functions of a file, and the imports behind its names."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self.functions = [node for node in nodes if isinstance(node, Function)]
        self._by_name = {function.name: function for function in self.functions}
        self._imported: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self._imported[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                for alias in node.names:
                    self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def decorators(self, function: Function) -> set[str]:
        named = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
        return {dotted_name(one).rpartition(".")[2] for one in named}

    def calls_in(self, root: Function, *, of_steps: bool) -> Iterator[tuple[ast.Call, str]]:
        """The calls of a function, directly or through others of the file, each with its imported name."""
        left, met = [root], {root}
        while left:
            for call in _own_calls(left.pop()):
                yield call, self._resolved(dotted_name(call.func))
                target = self._by_name.get(call.func.id) if isinstance(call.func, ast.Name) else None
                if target is None or target in met or self._is_apart(target, of_steps):
                    continue
                met.add(target)
                left.append(target)

    def _is_apart(self, target: Function, of_steps: bool) -> bool:
        if isinstance(target, ast.AsyncFunctionDef) and of_steps:
            return True  # it is checked by itself
        return not of_steps and bool(self.decorators(target) & (_RECORDED | {"durable"}))

    def _resolved(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return f"{self._imported.get(first, first)}{dot}{rest}"

    def how_not_to_block(self, name: str) -> str:
        first, *between, last = name.split(".") if "." in name else (name, name)
        if name != "input" and first not in {one.partition(".")[0] for one in self._imported.values()}:
            return ""
        is_http = last in _HTTP_VERBS and (first == "requests" or (first == "httpx" and between in ([], ["Client"])))
        return _TO_THREAD.format(name=name) if is_http else _BLOCKING.get(name, "").format(name=name)

    def kind_of_waker(self, name: str) -> str:
        first, _, last = name.rpartition(".")
        is_loop = first.rpartition(".")[2] in ("loop", "_loop", "get_running_loop", "get_event_loop")
        return _UNREPLAYED.get(name, "") or (_OF_LOOP.get(last, "") if is_loop else "")


def _own_calls(function: Function) -> Iterator[ast.Call]:
    """The calls in a function's own body, without those of a lambda or function inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            left.extend(ast.iter_child_nodes(node))


def dotted_name(node: ast.expr) -> str:
    """The dotted name `a.b.c` of an expression; empty when it has none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return dotted_name(node.func)
    return ""
