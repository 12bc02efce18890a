"""Map folders of another machine to this one. Pure.

A path is mapped by the longest folder that holds it; what no folder holds stays as it is. Lists of paths, as PATH
has them, are mapped one by one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from perdure.errors import InvalidInput


def mapping_for(old_home: str, new_home: str, given: Mapping[str, str]) -> dict[str, str]:
    """The path map of a task from another machine: the given pairs, and the home folder if it differs here.

    Raises:
        InvalidInput: a folder is not named by its whole path.
    """
    for old, new in given.items():
        if not (os.path.isabs(old) and os.path.isabs(new)):
            raise InvalidInput(f"{old!r} = {new!r} does not map whole paths", do="write --map /old/place=/new/place")
    homes = {old_home: new_home} if old_home != new_home and len(old_home) > 1 else {}
    return {os.path.normpath(old): os.path.normpath(new) for old, new in {**homes, **given}.items()}


def mapped(value: Any, paths: Mapping[str, str]) -> Any:
    """A value with every path in it as it is here."""
    if not paths:
        return value
    if isinstance(value, str):
        return _mapped_text(value, paths)
    if isinstance(value, Mapping):
        return {key: mapped(item, paths) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, paths) for item in value]
    return value


def _mapped_text(text: str, paths: Mapping[str, str]) -> str:
    if ":/" in text and text.startswith("/"):
        return ":".join(_mapped_path(part, paths) for part in text.split(":"))
    return _mapped_path(text, paths)


def _mapped_path(path: str, paths: Mapping[str, str]) -> str:
    for old in sorted(paths, key=len, reverse=True):
        if path == old or path.startswith(f"{old}/"):
            return paths[old] + path[len(old) :]
    return path
