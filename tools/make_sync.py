"""Write the blocking face, src/perdure/sync/, from the source of the async one.

    python tools/make_sync.py            writes it
    python tools/make_sync.py --check    says which files differ, and exits with 1 if one does

For each public module there is one of the same name. A coroutine function gets a twin that waits for it; what is
awaited nowhere is handed on as it is. The classes of `_faces.py` hold an async object and wait for its methods.
Files that are in BY_HAND are not touched: what they have takes the place of the async name.

A twin is made from the syntax tree of the async function: its signature and docstring without the async words, and
one line that waits. `home_of` finds the source by way of the doors' tables.
"""

from __future__ import annotations

import ast
import builtins
import copy
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from make_doors import SOURCE, absolute, table_of

ROOT = SOURCE / "perdure"
TARGET = ROOT / "sync"
# Modules with functions that are awaited, and those that only hand names on.
WITH_TWINS = ("automation", "checkpoint", "frames", "loops", "pause", "signals", "state", "streams")
HANDED_ON = ("budgets", "checks", "effects", "memory", "models", "recorded", "runtime", "types")
BY_HAND = {
    "Handle": "_app",
    "Memory": "_app",
    "Reducer": "_calls",
    "Stream": "_calls",
    "appending": "_calls",
    "open_runtime as open": "_live",
}
# Classes that hold an async one, with the door the async one comes from.
FACES = {
    "Tasks": "perdure._tasks",
    "Task": "perdure._tasks",
    "TaskFrames": "perdure._tasks",
    "Holders": "perdure._tasks",
    "Workers": "perdure._worker",
    "Units": "perdure._runtime",
    "UnitAccess": "perdure._runtime",
    "Effects": "perdure._durable",
    "Inbox": "perdure._tasks",
    "Journal": "perdure._durable",
    "Checkpoints": "perdure._tasks",
    "KillSwitch": "perdure._durable",
    "Schedules": "perdure._durable",
    "ScheduleDraft": "perdure._durable",
    "Triggers": "perdure._durable",
    "TriggerDraft": "perdure._durable",
    "Events": "perdure._durable",
    "Storage": "perdure.memory.storage",
    "Webhooks": "perdure._tasks",
}
NOT_BLOCKING = {"memory": {"get_many", "publish", "published", "verify_resumable"}}  # there is no twin of these yet
WAITED_HERE = {"run_script"}  # in the calling thread: a connection may be its thread's own
BLOCKING = {
    "AbstractAsyncContextManager": "AbstractContextManager",
    "AsyncIterator": "Iterator",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


# ── the async source ─────────────────────────────────────────────────────────────────────────────


@cache
def tree_of(module: str) -> ast.Module:
    path = SOURCE / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def names_given(module: str) -> dict[str, str]:
    """What a door gives: the name, and the module it takes it from."""
    tree = tree_of(module)
    if any(isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_door" for node in ast.walk(tree)):
        homes, _ = table_of(tree)
        return {entry: absolute(module, home) for home, entries in homes.items() for entry in entries}
    return {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module.startswith("perdure.") and not node.module.startswith("perdure._ground.lazy")
    }


def home_of(module: str, name: str) -> str:
    """The module in which a name is written, however many doors it goes through."""
    while not any(getattr(node, "name", None) == name for node in tree_of(module).body):
        given = names_given(module)
        if name not in given:
            break  # a constant
        module = given[name]
    return module


def definitions(module: str, name: str) -> list[Function]:
    """A function, with its overloads before it; nothing if the name is another thing."""
    home = tree_of(home_of(module, name))
    return [node for node in home.body if isinstance(node, Function) and node.name == name]


def is_awaited(function: Function) -> bool:
    returns = ast.unparse(function.returns) if function.returns else ""
    return isinstance(function, ast.AsyncFunctionDef) or returns.startswith("AsyncIterator")


# ── twins ────────────────────────────────────────────────────────────────────────────────────────


class _WithoutAsync(ast.NodeTransformer):
    """An annotation of the async face as the blocking one has it."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(BLOCKING.get(node.id, node.id), ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return node.slice if ast.unparse(node.value) == "Awaitable" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return node.left if ast.unparse(node.left) == ast.unparse(node.right) else node  # bool | Awaitable[bool]


def without_async(annotation: ast.expr | None) -> ast.expr | None:
    return _WithoutAsync().visit(copy.deepcopy(annotation)) if annotation is not None else None


def twin(function: Function, body: list[ast.stmt], decorators: Iterable[str] = ()) -> ast.FunctionDef:
    """A plain function with the same signature and docstring."""
    args = copy.deepcopy(function.args)
    for argument in arguments(args):
        argument.annotation = without_async(argument.annotation)
    said = ast.get_docstring(function, clean=False)
    docstring = [ast.Expr(ast.Constant(said))] if said is not None else []
    marks: list[ast.expr] = [ast.Name(name, ast.Load()) for name in decorators]
    made = ast.FunctionDef(function.name, args, [*docstring, *body], marks, without_async(function.returns))
    return ast.fix_missing_locations(made)


def arguments(args: ast.arguments) -> list[ast.arg]:
    rest = [extra for extra in (args.vararg, args.kwarg) if extra is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *rest]


def call_of(target: str, function: Function, *, is_method: bool = False) -> ast.Call:
    """A call that passes the function's own parameters on."""
    args = function.args
    places = [*args.posonlyargs, *args.args][1 if is_method else 0 :]
    given: list[ast.expr] = [passed(argument) for argument in places]
    if args.vararg is not None:
        given.append(ast.Starred(ast.Name(args.vararg.arg, ast.Load()), ast.Load()))
    by_name = [ast.keyword(argument.arg, passed(argument)) for argument in args.kwonlyargs]
    if args.kwarg is not None:
        by_name.append(ast.keyword(None, ast.Name(args.kwarg.arg, ast.Load())))
    return ast.Call(ast.parse(target, mode="eval").body, given, by_name)


def passed(argument: ast.arg) -> ast.expr:
    """A parameter as the async function wants it: plain functions become async ones, a blocking app or task its
    async one."""
    value: ast.expr = ast.Name(argument.arg, ast.Load())
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    if "Callable" in annotation and "Awaitable[" in annotation and " | Awaitable[" not in annotation:
        return call("as_async", value)
    is_object = annotation == "str | Task" or (
        argument.arg in ("app", "task") and annotation not in ("str", "str | None")
    )
    return call("inner_of", value) if is_object else value


def call(name: str, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.parse(name, mode="eval").body, list(given), [])


def result(value: ast.expr, function: Function) -> ast.stmt:
    returns = ast.unparse(function.returns) if function.returns else ""
    return ast.Expr(value) if returns == "None" else ast.Return(value)


def function_twins(module: str, name: str) -> Iterator[ast.FunctionDef]:
    for function in definitions(f"perdure.{module}", name):
        if any(ast.unparse(mark) == "overload" for mark in function.decorator_list):
            yield twin(function, [ast.Expr(ast.Constant(...))], ["overload"])
            continue
        asked = call_of(f"_{module}.{name}", function)
        returns = ast.unparse(function.returns) if function.returns else ""
        wait = "each_of" if returns.startswith("AsyncIterator") else "here" if name in WAITED_HERE else "waited"
        yield twin(function, [result(call(wait, asked), function)])


# ── faces ────────────────────────────────────────────────────────────────────────────────────────


def face(name: str) -> ast.ClassDef:
    """A class that holds an async one: its attributes as properties, then its methods in the order they are written."""
    sources = [source for _, source in lineage(FACES[name], name)]
    body: list[ast.stmt] = [ast.Expr(ast.Constant(ast.get_docstring(sources[-1], clean=False))), holder(name)]
    attributes = dict(found for source in sources for found in declared(source))  # a class may repeat its base's
    body += [attribute(key, annotation) for key, annotation in attributes.items()]
    own = {member.name for member in sources[-1].body if isinstance(member, Function)}
    for source in reversed(sources):
        for member in source.body:
            if not isinstance(member, Function) or member.name.startswith("_"):
                continue
            if source is sources[-1] or member.name not in own:
                is_property = any(ast.unparse(mark) == "property" for mark in member.decorator_list)
                body.append(attribute(member.name, member.returns) if is_property else method(member))
    return ast.ClassDef(name, [], [], body, [])


def class_of(door: str, name: str) -> ast.ClassDef:
    home = tree_of(home_of(door, name))
    return next(node for node in home.body if isinstance(node, ast.ClassDef) and node.name == name)


def lineage(door: str, name: str) -> list[tuple[str, ast.ClassDef]]:
    """A class and its bases of ours, the bases first, each with the module it is written in."""
    home, source = home_of(door, name), class_of(door, name)
    given = names_given(home)
    bases = [base.id for base in source.bases if isinstance(base, ast.Name) and base.id in given]
    return [*(found for base in bases for found in lineage(given[base], base)), (home, source)]


def declared(source: ast.ClassDef) -> list[tuple[str, ast.expr]]:
    """The attributes that a class declares."""
    own = [node for node in source.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return [(ast.unparse(node.target), node.annotation) for node in own if not is_private(node)]


def is_private(node: ast.AnnAssign) -> bool:
    return ast.unparse(node.target).startswith("_")


def holder(name: str) -> ast.stmt:
    taken = ast.arguments(
        [], [ast.arg("self"), ast.arg("inner", ast.Name(f"Async{name}", ast.Load()))], None, [], [], None, []
    )
    kept = ast.Assign(
        [ast.Attribute(ast.Name("self", ast.Load()), "_inner", ast.Store())], ast.Name("inner", ast.Load())
    )
    made = ast.FunctionDef("__init__", taken, [kept], [], ast.Constant(None))
    return ast.fix_missing_locations(made)


def attribute(name: str, annotation: ast.expr | None) -> ast.stmt:
    value = ast.parse(f"self._inner.{name}", mode="eval").body
    returns = without_async(annotation)
    kind = ast.unparse(returns) if returns is not None else ""
    taken = ast.arguments([], [ast.arg("self")], None, [], [], None, [])
    shown = ast.Return(call(kind, value) if kind in FACES else value)
    made = ast.FunctionDef(name, taken, [shown], [ast.Name("property", ast.Load())], returns)
    return ast.fix_missing_locations(made)


def method(function: Function) -> ast.stmt:
    asked: ast.expr = call_of(f"self._inner.{function.name}", function, is_method=True)
    returns = ast.unparse(function.returns) if function.returns else ""
    if returns.startswith("AsyncIterator"):
        return twin(function, [ast.Return(call("iterate", asked))])
    if returns.startswith("AbstractAsyncContextManager"):
        entering = ast.With([ast.withitem(call("entered", asked))], [ast.Expr(ast.Yield(ast.Name("self", ast.Load())))])
        made = twin(function, [entering], ["contextmanager"])
        made.returns = ast.parse(returns.replace("AbstractAsyncContextManager", "Iterator"), mode="eval").body
        return made
    if isinstance(function, ast.AsyncFunctionDef):
        asked = call("drive", asked)
    return twin(function, [result(call(returns, asked) if returns in FACES else asked, function)])


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def module_with_twins(name: str) -> str:
    given = names_given(f"perdure.{name}")
    twins = [
        made
        for entry in given
        for made in function_twins(name, entry)
        if is_awaited(definitions(f"perdure.{name}", entry)[-1])
    ]
    own = {made.name for made in twins}
    same = [entry for entry in given if entry not in own and entry not in BY_HAND and entry not in FACES]
    imports = [f"from perdure import {name} as _{name}"]
    imports += [f"from perdure.{name} import {entry}" for entry in same]
    imports += [f"from perdure.sync.{BY_HAND[entry]} import {entry}" for entry in given if entry in BY_HAND]
    imports += [f"from perdure.sync._faces import {entry}" for entry in given if entry in FACES]
    sources = {home_of(f"perdure.{name}", entry) for entry in own}
    imports += needed(twins, sources, {*own, *given})
    said = (ast.get_docstring(tree_of(f"perdure.{name}")) or "").splitlines()[0]
    head = f"{said}\n\nThe same as perdure.{name}, without await. Written by tools/make_sync.py.\n"
    return laid_out(head, imports, [*twins], TARGET / f"{name}.py", sorted(given))


def faces_file() -> str:
    made = [face(name) for name in FACES]
    sources = {home for name, door in FACES.items() for home, _ in lineage(door, name)}
    imports = [f"from {door} import {name} as Async{name}" for name, door in FACES.items()]
    imports += needed(made, sources, {*FACES, *(f"Async{name}" for name in FACES)})
    at_once = [line for line in imports if not line.startswith("from perdure.") or "bridge" in line]
    for_types = [line for line in imports if line not in at_once]
    head = "Classes that hold an async object and wait for its methods.\n\nWritten by tools/make_sync.py.\n"
    return laid_out(head, at_once, made, TARGET / "_faces.py", for_types=for_types)


def door(name: str) -> str:
    """A module that hands the names of the async one on, but for those that are written for blocking code."""
    homes: dict[str, list[str]] = {}
    for entry in names_given(f"perdure.{name}"):
        if entry in NOT_BLOCKING.get(name, ()):
            continue
        plain = entry.rpartition(" ")[2]
        home = "perdure.sync._faces" if entry in FACES else f"perdure.{name}"
        home = f"perdure.sync.{BY_HAND[entry]}" if entry in BY_HAND else home
        homes.setdefault(home, []).append(entry if entry in BY_HAND else plain)
    table = ast.Dict([ast.Constant(home) for home in homes], [constants(names) for names in homes.values()])
    given = ast.Assign(
        [ast.Name("__getattr__", ast.Store())], call("lazy_door", ast.Name("__name__", ast.Load()), table)
    )
    said = (ast.get_docstring(tree_of(f"perdure.{name}")) or "").splitlines()[0]
    head = f"{said}\n\nThe same as perdure.{name}. Written by tools/make_sync.py.\n"
    imports = ["from perdure._ground.lazy_door import lazy_door"]
    return laid_out(head, imports, [given], TARGET / f"{name}.py")


def constants(names: Sequence[str], kind: type[ast.Tuple | ast.List] = ast.Tuple) -> ast.expr:
    return kind([ast.Constant(name) for name in names], ast.Load())


KNOWN = {
    "each_of": "perdure._durable",
    "here": "perdure._durable",
    "waited": "perdure._durable",
    "as_async": "perdure._durable",
    "inner_of": "perdure._ground.bridge",
    "drive": "perdure._ground.bridge",
    "entered": "perdure._ground.bridge",
    "iterate": "perdure._ground.bridge",
    "contextmanager": "contextlib",
    "Iterator": "collections.abc",
    "AbstractContextManager": "contextlib",
    "overload": "typing",
}


def needed(made: Iterable[ast.stmt], sources: Iterable[str], known: set[str]) -> list[str]:
    """The imports and definitions that the made code needs, found where the async code has them."""
    wanted = {node.id for part in made for node in ast.walk(part) if isinstance(node, ast.Name)}
    found = []
    for name in sorted(wanted - known - set(dir(builtins)) - {"self"}):
        if name in KNOWN:
            found.append(f"from {KNOWN[name]} import {name}")
            continue
        line = next((line for module in sorted(sources) if (line := origin(module, name))), None)
        if line is not None:
            found.append(line)
    return found


def origin(module: str, name: str) -> str | None:
    """How a module has a name: the import, the type variable, or an import from where it is given."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import) and any(alias.name == name for alias in node.names):
            return f"import {name}"
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"from {given_by(node.module or '', alias.name)} import {ast.unparse(alias)}"
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            is_plain = names <= {"Any", "ParamSpec", "TypeVar"}  # type variables and literals are written anew
            return ast.unparse(node) if is_plain else f"from {given_by(module, name)} import {name}"
        if isinstance(node, ast.ClassDef) and node.name == name:
            return f"from {given_by(module, name)} import {name}"
    return None


def given_by(module: str, name: str) -> str:
    """The outermost door that gives a name of this module."""
    parts = module.split(".")
    for end in range(2, len(parts)):
        around = ".".join(parts[:end])
        if (SOURCE / around.replace(".", "/")).is_dir() and around != "perdure._ground" and name in names_given(around):
            return around
    return module


def laid_out(
    head: str,
    imports: list[str],
    body: Sequence[ast.stmt],
    file: Path,
    names: Sequence[str] = (),
    *,
    for_types: Sequence[str] = (),
) -> str:
    """The file's text, as ruff formats it. `for_types` are imports that only annotations need."""
    lines = list(dict.fromkeys(imports))
    is_import = [line.startswith(("from ", "import ")) for line in lines]
    defined = [line for line, is_one in zip(lines, is_import, strict=True) if not is_one]
    words = [word for word in ("Any", "ParamSpec", "TypeVar") if any(word in line for line in defined)]
    if for_types:
        words.append("TYPE_CHECKING")
    top = [line for line, is_one in zip(lines, is_import, strict=True) if is_one]
    top += [f"from typing import {word}" for word in words]
    tree = ast.parse("\n".join(["from __future__ import annotations", *top]))
    if for_types:
        tree.body.append(ast.If(ast.Name("TYPE_CHECKING", ast.Load()), ast.parse("\n".join(for_types)).body, []))
    tree.body += ast.parse("\n".join(defined)).body
    if names:
        tree.body.append(ast.Assign([ast.Name("__all__", ast.Store())], constants(names, ast.List)))
    tree.body = [ast.Expr(ast.Constant(head)), *tree.body, *body]
    return formatted(ast.unparse(ast.fix_missing_locations(tree)), file)


def formatted(text: str, file: Path) -> str:
    for command in (["check", "--fix-only", "--select", "I,F401", "-q"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(file), "-"]
        done = subprocess.run(ruff, input=text, text=True, capture_output=True, check=False)
        if not done.stdout:
            raise SyntaxError(f"{file}: {done.stderr}\n{text}")
        text = done.stdout
    return text


def files() -> dict[Path, str]:
    """The text of every file this writes."""
    made = {TARGET / "_faces.py": faces_file()}
    made |= {TARGET / f"{name}.py": module_with_twins(name) for name in WITH_TWINS}
    return made | {TARGET / f"{name}.py": door(name) for name in HANDED_ON}


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    differing = []
    for file, text in files().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            differing.append(file)
            if not is_check:
                file.write_text(text, encoding="utf-8")
    for file in differing:
        print(f"{'differs' if is_check else 'wrote'}: {file.relative_to(SOURCE)}")
    return 1 if is_check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
