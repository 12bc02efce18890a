"""The door of a package: each name is imported from its module when it is first used.

    __getattr__ = lazy_door(__name__, {"attempt": ("Attempt",), "scopes": ("Scope", "current as current_scope")})

Importing a package then costs next to nothing, whatever its modules import. A module of the public face is such a
door too; the modules in its table are named from the root, as `perdure._durable.pauses.reasons`. Type checkers read
the `.pyi` beside the door, which `tools/make_doors.py` writes from this table.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

ROOT = "perdure."


def lazy_door(
    package: str,
    homes: Mapping[str, Sequence[str]],
    *,
    modules: Sequence[str] = (),
    missing: Callable[[str], Exception] | None = None,
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: a name leads to the module it is listed under, `modules` to themselves.

    `missing(name)` makes the exception for a name that the table does not have.
    """
    home_of: dict[str, tuple[str, str]] = {}
    for module, names in homes.items():
        for entry in names:
            name, _, alias = entry.partition(" as ")
            home_of[alias or name] = _absolute(package, module), name
    door = sys.modules[package].__dict__
    paths = {path.rpartition(".")[2]: _absolute(package, path) for path in modules}
    door["__all__"] = [*home_of, *paths]
    door["__dir__"] = lambda: sorted(door["__all__"])

    def find(name: str) -> Any:
        if name in home_of:
            module, original = home_of[name]
            value = getattr(import_module(module), original)
        elif name in paths:
            value = import_module(paths[name])
        elif missing is not None and not name.startswith("_"):
            raise missing(name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        door[name] = value
        return value

    return find


def _absolute(package: str, module: str) -> str:
    return module if module.startswith(ROOT) else f"{package}.{module}"
