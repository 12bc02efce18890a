"""Find the app or function a person names: `my.module:app`, `path/to/file.py:app`, or either without `:app`.

Importing runs code: of a module whose name a person has typed. No name found in a store is ever imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._durable import DurableFunction


def load_app(target: str) -> Perdure:
    """The app, with the user's module imported as their own programs import it: from the current folder first.

    Raises:
        click.UsageError: there is no such module, it cannot be imported, or what it names is no app.
    """
    from perdure._app import Perdure

    place, _, name = target.partition(":") if not target.endswith(".py") else (target, "", "")
    module = _load(place)
    app = getattr(module, name or "app", None)
    if not isinstance(app, Perdure):
        apps = [key for key, value in vars(module).items() if isinstance(value, Perdure)]
        there = f"it has {', '.join(apps)}" if apps else "it has no app: write `app = Perdure()` in it"
        raise click.UsageError(f"{name or 'app'!r} in {place} is no app of perdure; {there}")
    return app


def load_function(target: str) -> DurableFunction[..., Any]:
    """The durable function a person names: `my.module:digest` or `agent.py:digest`.

    Raises:
        click.UsageError: there is no such module, it cannot be imported, or what it names is no durable function.
    """
    from perdure._durable import DurableFunction

    place, _, name = target.rpartition(":")
    found: Any = _load(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, DurableFunction):
        raise click.UsageError(f"{name!r} in {place} is no durable function: it needs @durable")
    return found


def _load(place: str) -> ModuleType:
    if not place:
        raise click.UsageError("name the module or file that it is in: my.module:app or agent.py:app")
    try:
        return _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    except click.ClickException:
        raise
    except (ImportError, SyntaxError) as error:
        raise click.UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    except (Exception, SystemExit) as error:
        raise click.UsageError(
            f"{place} cannot be imported: {type(error).__name__}: {error}; what it does as a program, but not when it "
            'is imported, goes under `if __name__ == "__main__":`'
        ) from error


def _load_module(name: str) -> ModuleType:
    _search_first(Path.cwd())
    return import_module(name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.UsageError(f"there is no file {path}")
    _search_first(path.resolve().parent)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _search_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
