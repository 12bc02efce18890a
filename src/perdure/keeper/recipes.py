"""What it takes to make a shell again: from what it said of itself at its last prompt. Pure.

The dump has everything, so it stays in memory. The recipe is what may be written to disk: without the variables
whose names or values say that they are secret, which are named instead, and without what only the old process had.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from perdure._ground import secret_forms

_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=\S")
_VARIABLE = re.compile(r"declare -([-a-zA-Z]+) ([A-Za-z_]\w*)")
# Of the process itself, or set by bash as it goes along.
_OF_THE_PROCESS = re.compile(
    r"(BASH\w*|EPOCH\w*|SRANDOM|RANDOM|SECONDS|LINENO|COMP_\w+|DIRSTACK|FUNCNAME|GROUPS|HISTCMD|PIPESTATUS|SHLVL|_|PPID"
    r"|UID|EUID|COLUMNS|LINES|OPTIND|OPTERR|PWD|OLDPWD|SHELLOPTS|PROMPT_COMMAND|PS0|HISTFILE|TERM|__perdure\w*"
    r"|PERDURE_UNIT)$"
)
_OWN_FUNCTION = "__perdure_"
MOST_HISTORY = 500


class Recipe(NamedTuple):
    script: str  # for a new shell to read, after its own start
    directory: str
    exported: frozenset[str]  # names of what was in its environment
    withheld: tuple[str, ...]  # variables that were not written down
    counts: dict[str, int]  # what a reader of a verdict wants to know


def recipe_of(
    dump: str, history: str = "", *, tainted: Collection[str] = (), only_known: str | None = None
) -> Recipe | None:
    """The recipe from a dump; None when the dump is cut off.

    `tainted` variables are withheld too. `only_known` is the recipe before: given when a secret was typed since, so
    that a variable that is new or has changed may hold it, and is withheld.
    """
    parts = _sections(dump)
    if not {"directory", "variables"} <= parts.keys():
        return None
    directory = parts["directory"].split("\0")[0]
    known = None if only_known is None else frozenset(_entries(only_known))
    variables, exported, withheld = _variables(parts["variables"], frozenset(tainted), known)
    functions = _functions(parts.get("functions", ""))
    lines = [
        *variables,
        *functions,
        *(f"declare -fx {name}" for name in _exported_functions(parts.get("exported", ""))),
        *_lines(parts.get("aliases", "")),
        *_lines(parts.get("traps", "")),
        *(line for line in _lines(parts.get("options", "")) if _is_restored(line)),
        *_lines(parts.get("umask", "")),
        f"cd -- {quoted(directory)}",
    ]
    counts = {"variables": len(variables), "functions": len(functions), "history": len(kept_history(history))}
    return Recipe("\n".join(lines) + "\n", directory, frozenset(exported), tuple(withheld), counts)


def kept_history(text: str) -> list[str]:
    """The last commands, without those that name a secret."""
    lines = [line for line in text.split("\n") if line and not _names_secret(line)]
    return lines[-MOST_HISTORY:]


def _names_secret(line: str) -> bool:
    assigned = any(secret_forms.is_telling(name) for name in _ASSIGNED.findall(line))
    return assigned or secret_forms.hide_in_command(line.split()) != line.split() or secret_forms.looks_secret(line)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _sections(dump: str) -> dict[str, str]:
    """By name; a section's own text may have any line but one that begins like a heading."""
    parts: dict[str, list[str]] = {}
    here: list[str] = []
    for line in dump.split("\n"):
        if line.startswith("#perdure "):
            here = parts.setdefault(line[9:], [])
        else:
            here.append(line)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _entries(text: str) -> list[str]:
    return re.split(r"\n(?=declare -)", text.strip("\n"))


def _variables(
    text: str, tainted: frozenset[str], known: frozenset[str] | None
) -> tuple[list[str], list[str], list[str]]:
    kept, exported, withheld = [], [], []
    for entry in _entries(text):
        found = _VARIABLE.match(entry)
        if found is None or "r" in found[1] or _OF_THE_PROCESS.match(found[2]):
            continue
        name = found[2]
        if "x" in found[1]:
            exported.append(name)
        is_new = known is not None and entry not in known
        if secret_forms.is_secret(name, _value_of(entry)) or name in tainted or is_new:
            withheld.append(name)
        else:
            kept.append(entry)
    return kept, exported, withheld


def _value_of(entry: str) -> str:
    """What stands behind `declare -x NAME=`, without the quotes bash has put around it."""
    return entry.partition("=")[2].strip("\"'")


def _functions(text: str) -> list[str]:
    """Each ends with a brace in the first column."""
    found = re.findall(r"^\S+ \(\) *\n\{.*?^\}", text, re.DOTALL | re.MULTILINE)
    return [one for one in found if not one.startswith(_OWN_FUNCTION)]


def _exported_functions(text: str) -> list[str]:
    names = [line.split()[-1] for line in _lines(text)]
    return [name for name in names if not name.startswith(_OWN_FUNCTION)]


def _is_restored(line: str) -> bool:
    """Not what is switched by how a shell is started, and cannot be."""
    return not re.search(r"\b(history|emacs|vi|monitor|interactive\S*|login_shell|restricted_shell|histexpand)\b", line)
