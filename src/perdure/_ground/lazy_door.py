"""The door of a package: each name is imported from its module when it is first used.

    __getattr__ = lazy_door(__name__, {"attempt": ("Attempt",), "scopes": ("Scope", "current as current_scope")})

Importing a package then costs next to nothing, whatever its modules import. Type checkers read the `__init__.pyi`
beside the door, which `tools/make_doors.py` writes from this table.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_door(package: str, homes: Mapping[str, Sequence[str]], *, modules: Sequence[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package: a name leads to the module it is listed under, `modules` to themselves."""
    home_of: dict[str, tuple[str, str]] = {}
    for module, names in homes.items():
        for entry in names:
            name, _, alias = entry.partition(" as ")
            home_of[alias or name] = module, name
    door = sys.modules[package].__dict__
    paths = {path.rpartition(".")[2]: path for path in modules}
    door["__all__"] = [*home_of, *paths]
    door["__dir__"] = lambda: sorted(door["__all__"])

    def find(name: str) -> Any:
        if name in home_of:
            module, original = home_of[name]
            value = getattr(import_module(f"{package}.{module}"), original)
        elif name in paths:
            value = import_module(f"{package}.{paths[name]}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        door[name] = value
        return value

    return find
