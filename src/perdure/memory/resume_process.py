"""The clean process in which a state is handed to the code that resumes; run by resumable.py.

Reads {file, name, state} from standard input, and writes its verdict to standard output, after a marker line.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from perdure._ground.encoding import codec

_MARK = b"\n--perdure-verdict--\n"


class Missed(KeyError):
    """The code read a field that the state does not have."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


class Watched(dict[str, Any]):
    """A mapping that reports a missing key by its whole path."""

    def __init__(self, values: dict[str, Any], path: str = "") -> None:
        super().__init__({key: watch(value, f"{path}.{key}".lstrip(".")) for key, value in values.items()})
        self._path = path

    def __missing__(self, key: str) -> Any:
        raise Missed(f"{self._path}.{key}".lstrip("."))


def watch(value: Any, path: str = "") -> Any:
    if isinstance(value, dict):
        return Watched(value, path)
    if isinstance(value, list):
        return [watch(item, f"{path}[{place}]") for place, item in enumerate(value)]
    return value


def main() -> None:
    sent = msgspec.msgpack.decode(sys.stdin.buffer.read())
    field = problem = ""
    try:
        function = _load(sent["file"], sent["name"])
        _resume(function, sent["state"])
    except Missed as missed:
        field, problem = missed.path, f"it needs the field {missed.path!r}, which the state does not have"
    except BaseException as error:
        field = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
        problem = f"{type(error).__name__}: {error}"
    sys.stdout.flush()
    os.write(1, _MARK + msgspec.msgpack.encode({"field": field, "problem": problem}))


def _load(file: str, name: str) -> Any:
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location("perdure_resumed_code", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def _resume(function: Any, data: bytes) -> None:
    """The function's annotation can name a class for the state."""
    hints = get_type_hints(function)
    first = next(iter(inspect.signature(function).parameters), "")
    wanted = hints.get(first, Any)
    is_plain = wanted is Any or wanted is dict or getattr(wanted, "__origin__", None) is dict
    value = watch(codec.decode(data)) if is_plain else msgspec.convert(codec.decode(data), wanted)
    done = function(value)
    if inspect.isawaitable(done):

        async def wait() -> None:
            await done

        asyncio.run(wait())


if __name__ == "__main__":
    main()
