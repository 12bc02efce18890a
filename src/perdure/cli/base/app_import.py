"""Import the app or function that an argument names: `my.module:app`, `path/to/file.py:app`, or without `:app`.

Importing runs code, so perdure imports only a module that a person has typed, never a name found in a store.
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
    """Import the app; modules are searched in the current folder first.

    Raises:
        click.UsageError: the module does not exist, cannot be imported, or the name is not an app.
    """
    from perdure._app import Perdure

    place, _, name = target.partition(":") if not target.endswith(".py") else (target, "", "")
    module = _load(place)
    app = getattr(module, name or "app", None)
    if not isinstance(app, Perdure):
        apps = [key for key, value in vars(module).items() if isinstance(value, Perdure)]
        there = f"the module has {', '.join(apps)}" if apps else "the module has no app: write `app = Perdure()` in it"
        raise click.UsageError(f"{name or 'app'!r} in {place} is not an app (an object of Perdure); {there}")
    return app


def load_function(target: str) -> DurableFunction[..., Any]:
    """Import the durable function `my.module:digest` or `agent.py:digest`.

    Raises:
        click.UsageError: the module does not exist, cannot be imported, or the name is not a durable function.
    """
    from perdure._durable import DurableFunction

    place, _, name = target.rpartition(":")
    found: Any = _load(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, DurableFunction):
        raise click.UsageError(f"{name!r} in {place} is not a durable function: decorate it with @durable")
    return found


def _load(place: str) -> ModuleType:
    if not place:
        raise click.UsageError("give the module or file too: my.module:app or agent.py:app")
    try:
        return _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    except click.ClickException:
        raise
    except ModuleNotFoundError as error:
        if error.name != place.partition(".")[0]:  # the module is there, and imports one that is not
            raise click.UsageError(f"{place} cannot be imported: {error}") from error
        told = f"there is no module {place} in {Path.cwd()} or on PYTHONPATH"
        raise click.UsageError(f"{told}: change the folder, or name the file, agent.py:app") from error
    except (ImportError, SyntaxError) as error:
        raise click.UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    except (Exception, SystemExit) as error:
        raise click.UsageError(
            f"{place} cannot be imported: {type(error).__name__}: {error}; put code that "
            'runs the program under `if __name__ == "__main__":`'
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
