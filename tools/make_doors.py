"""Write the `.pyi` of every lazy door, so that type checkers know where its names come from.

    python tools/make_doors.py            writes them
    python tools/make_doors.py --check    says which differ, and exits with 1 if one does

A door's table is in its `__init__.py`, or in a module of the public face (see perdure/_ground/lazy_door.py). Its names
are written there by hand, once.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOT = "perdure"
LINE = 120


def doors() -> Iterator[Path]:
    """The files that hold a table: doors of packages, and modules of the public face."""
    for file in sorted(
        {*(SOURCE / ROOT).rglob("__init__.py"), *(SOURCE / ROOT).glob("*.py"), *(SOURCE / ROOT / "sync").glob("*.py")}
    ):
        if "= lazy_door(" in file.read_text(encoding="utf-8"):
            yield file


def module_name(door: Path) -> str:
    """The name a door is imported by."""
    path = door.parent if door.name == "__init__.py" else door.with_suffix("")
    return ".".join(path.relative_to(SOURCE).parts)


def stub_of(door: Path) -> str:
    """The text of a door's stub."""
    tree = ast.parse(door.read_text(encoding="utf-8"))
    package = ".".join(door.parent.relative_to(SOURCE).parts)
    homes, modules = table_of(tree)
    lines = [f'"""{ast.get_docstring(tree)}\n\nWritten by tools/make_doors.py from the table in {door.name}.\n"""\n']
    lines += [_from(absolute(package, home), names) for home, names in homes.items()]
    for path in modules:
        parent, _, name = absolute(package, path).rpartition(".")
        lines.append(_from(parent, [name]))
    lines += [*_rest(tree), "__all__ = [", *(f'    "{name}",' for name in names_of(tree)), "]"]
    return "\n".join(lines) + "\n"


def absolute(package: str, module: str) -> str:
    """The whole name of a module in a table."""
    return module if module.startswith(f"{ROOT}.") else f"{package}.{module}"


def names_of(tree: ast.Module) -> list[str]:
    """The names a door gives, in the order of its table."""
    homes, modules = table_of(tree)
    given = [entry.rpartition(" ")[2] for names in homes.values() for entry in names]
    return given + [path.rpartition(".")[2] for path in modules]


def table_of(tree: ast.Module) -> tuple[dict[str, list[str]], list[str]]:
    """Which names a door takes from which of its modules, and the modules it gives themselves."""
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_door")
    homes: dict[str, list[str]] = {home: list(names) for home, names in ast.literal_eval(call.args[1]).items()}
    modules = [ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg == "modules"]
    return homes, list(modules[0]) if modules else []


def _from(module: str, entries: list[str]) -> str:
    line = f"from {module} import {', '.join(entries)}"
    if len(line) <= LINE:
        return line
    return "\n".join([f"from {module} import (", *(f"    {entry}," for entry in entries), ")"])


def _rest(tree: ast.Module) -> Iterator[str]:
    """Constants that a door has beside its table, as `__version__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield f"{ast.unparse(node.targets[0])}: {type(node.value.value).__name__}"


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    differing = []
    for door in doors():
        stub, text = door.with_suffix(".pyi"), stub_of(door)
        if not stub.exists() or stub.read_text(encoding="utf-8") != text:
            differing.append(stub)
            if not is_check:
                stub.write_text(text, encoding="utf-8")
    for stub in differing:
        print(f"{'differs' if is_check else 'wrote'}: {stub.relative_to(SOURCE)}")
    return 1 if is_check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
