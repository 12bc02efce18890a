"""The parts needed to make a shell again, from its own report at its last prompt. Pure.

Both are data. The dump has everything, so it stays in memory; any process of the unit may have written it, so it is
read as untrusted bytes. The recipe is the part that may be written to disk: without suspected secrets, which are named
instead, and without parts that only the old process had. The new shell gets it as values to assign (`fields`) and
definitions of functions (`definitions`), never as commands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from perdure._ground.secrets import secret_forms

_FORMAT = "perdure-shell-1"
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=\S")
_ATTRIBUTES = re.compile(r"declare -([-A-Za-z]+) ")
_TARGET = re.compile(r' [A-Za-z_]\w*="([^"]*)"\n?\Z', re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FUNCTION_NAME = re.compile(r"[^\s/=%$'\"`\\();&|<>]+")
_OPTION = re.compile(r"[a-z0-9_-]+", re.ASCII)
_SIGNAL = re.compile(r"[A-Z][A-Z0-9+-]*", re.ASCII)
_TRAP = re.compile(r"trap -- '((?:[^']|'\\'')*)' (\S+)\n")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_UMASK = re.compile(r"[0-7]{1,4}")
# Of the process itself, or set by bash while it runs.
_OF_THE_PROCESS = re.compile(
    r"(BASH\w*|EPOCH\w*|SRANDOM|RANDOM|SECONDS|LINENO|COMP_\w+|DIRSTACK|FUNCNAME|GROUPS|HISTCMD|PIPESTATUS|SHLVL|_|PPID"
    r"|UID|EUID|COLUMNS|LINES|OPTIND|OPTERR|PWD|OLDPWD|SHELLOPTS|HISTFILE|TERM|__perdure\w*|PERDURE_UNIT"
    r"|READLINE_\w+)$"
)
# Switched by how a shell is started, and not by itself; `history` is on in every shell that has a prompt.
_BY_START = frozenset({"history", "interactive", "login_shell", "restricted_shell", "noexec", "onecmd"})
_OWN = "__perdure_"
_OWN_PROMPT = ("$({ __perdure_mark C; } 2>/dev/null)", "${__perdure_no[__perdure_more=1]-}")
MOST_HISTORY = 500
# A function is passed in the environment, where one text has at most 128 kB and all of them a few MB.
_LONGEST_FUNCTION, _MOST_FUNCTIONS = 100_000, 1_000_000
_MOST_NAMED = 50

Values = list[tuple[str, str]]


@dataclass(frozen=True)
class Variable:
    name: str
    attributes: str  # letters as `declare` has them, and "=" for an array that is empty rather than unset
    values: Values  # of a plain variable, at most one

    def as_json(self) -> list[Any]:
        return [self.name, self.attributes, [list(pair) for pair in self.values]]


@dataclass
class Recipe:
    directory: str = ""
    umask: str = ""
    set_options: list[str] = field(default_factory=list)  # that are on
    shell_options: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    traps: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    exported_functions: list[str] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    exported: list[str] = field(default_factory=list)  # names of what was in its environment
    withheld: list[str] = field(default_factory=list)  # variables that were not written down
    not_rebuilt: list[str] = field(default_factory=list)  # what else a new shell will not have, in words

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "variables": [one.as_json() for one in self.variables]}

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Recipe:
        """The content that `as_json` wrote.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: it is something else.
        """
        variables = [
            Variable(str(name), str(attributes), [(str(key), str(value)) for key, value in values])
            for name, attributes, values in told["variables"]
        ]
        return cls(
            str(told["directory"]),
            str(told["umask"]),
            set_options=_texts(told["set_options"]),
            shell_options=_texts(told["shell_options"]),
            aliases=_mapping(told["aliases"]),
            traps=_mapping(told["traps"]),
            functions=_mapping(told["functions"]),
            exported_functions=_texts(told["exported_functions"]),
            variables=variables,
            exported=_texts(told["exported"]),
            withheld=_texts(told["withheld"]),
            not_rebuilt=_texts(told["not_rebuilt"]),
        )


def _texts(told: Any) -> list[str]:
    return [str(one) for one in told]


def _mapping(told: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in told.items()}


def recipe_of(dump: bytes, *, tainted: Collection[str] = (), before: Recipe | None = None) -> Recipe | None:
    """The recipe from a dump; None when the dump is cut off, or is none.

    `tainted` variables are withheld too. `before` is the recipe of the previous prompt. It is given when a secret was
    typed since: a new or changed variable may then contain it, and is withheld.
    """
    found = Recipe()
    try:
        _read(found, _Fields(dump))
    except ValueError:
        return None
    known = None if before is None else {one.name: one for one in before.variables}
    kept = []
    for one in found.variables:
        is_new = known is not None and known.get(one.name) != one
        is_secret = any(secret_forms.is_secret(one.name, value) for _, value in one.values)
        if is_secret or one.name in tainted or is_new:
            found.withheld.append(one.name)
        else:
            kept.append(one)
    found.variables = kept
    found.not_rebuilt = found.not_rebuilt[:_MOST_NAMED]
    return found


class _Fields:
    """The fields of a dump, one after the other."""

    def __init__(self, dump: bytes) -> None:
        whole, end, rest = dump.rpartition(b"\0")
        if not end or rest:
            raise ValueError("cut off")
        self._fields = iter(whole.split(b"\0"))

    def bytes(self) -> bytes:
        for one in self._fields:
            return one
        raise ValueError("cut off")

    def word(self) -> str:
        return self.bytes().decode("ascii")

    def text(self) -> str | None:
        """None when the text is not UTF-8: it could not be stored as it is."""
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            return None


def _read(found: Recipe, fields: _Fields) -> None:
    if fields.word() != _FORMAT:
        raise ValueError("not a dump")
    while (kind := fields.word()) != "end":
        match kind:
            case "directory":
                found.directory = _or_named(found, fields.text(), "its folder, whose name is not UTF-8") or ""
            case "options":
                found.set_options, found.shell_options = (_options(fields.word()) for _ in range(2))
                if "history" not in found.set_options:
                    found.not_rebuilt.append("set +o history")
            case "umask":
                found.umask = fields.word().strip()
                if not _UMASK.fullmatch(found.umask):
                    raise ValueError("umask")
            case "traps":
                _read_traps(found, fields.text())
            case "exported":
                names = [line.split()[-1] for line in (fields.text() or "").splitlines() if line.strip()]
                found.exported_functions = [name for name in names if not name.startswith(_OWN)]
            case "alias":
                _read_alias(found, fields.text(), fields.text())
            case "function":
                _read_function(found, fields.text(), fields.text())
            case "variable":
                _read_variable(found, fields)
            case _:
                raise ValueError(kind)


def _or_named(found: Recipe, text: str | None, what: str) -> str | None:
    if text is None:
        found.not_rebuilt.append(what)
    return text


def _options(text: str) -> list[str]:
    return [name for name in text.split(":") if _OPTION.fullmatch(name)]


def _read_traps(found: Recipe, text: str | None) -> None:
    rest = _TRAP.sub("", text) if text is not None else "?"
    if rest.strip():
        found.not_rebuilt.append("traps that could not be read")
    for quoted_action, signal in _TRAP.findall(text or ""):
        action = quoted_action.replace("'\\''", "'")
        if not _SIGNAL.fullmatch(signal) or secret_forms.looks_secret(action):
            found.not_rebuilt.append(f"the trap of {signal[:40]}")
        else:
            found.traps[signal] = action


def _read_alias(found: Recipe, name: str | None, value: str | None) -> None:
    if name is None or value is None or not name or name in ("@", "*") or secret_forms.looks_secret(value):
        found.not_rebuilt.append(f"alias {(name or '?')[:40]}")
    else:
        found.aliases[name] = value


def _read_function(found: Recipe, name: str | None, text: str | None) -> None:
    if name is not None and name.startswith(_OWN):
        return
    body = None if name is None or text is None else _body(name, text)
    total = sum(len(one) for one in found.functions.values())
    if (
        name is None
        or body is None
        or not _FUNCTION_NAME.fullmatch(name)
        or secret_forms.looks_secret(body)
        or len(body.encode()) > _LONGEST_FUNCTION
        or total + len(body) > _MOST_FUNCTIONS
    ):
        found.not_rebuilt.append(f"function {(name or '?')[:80]}")
    else:
        found.functions[name] = body


def _body(name: str, text: str) -> str | None:
    """A definition as bash takes it from an environment; None when the text is none."""
    head = re.match(rf"(?:function )?{re.escape(name)} \(\) *\n?", text)
    if head is None:
        return None
    rest = text[head.end() :].rstrip("\n")
    return f"() {rest}" if rest.startswith("{") else f"() {{\n{rest}\n}}"


def _read_variable(found: Recipe, fields: _Fields) -> None:
    name, told = fields.word(), fields.bytes().decode(errors="replace")
    count = fields.word()
    if not _WHOLE_NUMBER.fullmatch(count) or int(count) < 0:
        raise ValueError("count")
    pairs = [(fields.text(), fields.text()) for _ in range(int(count))]
    attributes = _ATTRIBUTES.match(told)
    if not _NAME.fullmatch(name) or _OF_THE_PROCESS.match(name):
        return
    if attributes is None:  # a line of something else
        return
    letters = attributes[1].replace("-", "")
    if set(letters) & set("aA") and not pairs and told.rstrip().endswith("=()"):
        letters += "="  # empty, and not unset
    if "x" in letters:
        found.exported.append(name)
    values = [(key, value) for key, value in pairs if key is not None and value is not None]
    if "n" in letters:
        values = [("0", target[1])] if (target := _TARGET.search(told)) else []
    if len(values) < len(pairs) or not _can_be_assigned(letters, values):
        found.not_rebuilt.append(f"variable {name}")
        return
    if name in ("PROMPT_COMMAND", "PS0", "PS2"):  # without what the keeper has in them
        values = [(key, _without_own(value)) for key, value in values if not _is_own(name, value)]
        letters = letters.replace("x", "")
    found.variables.append(Variable(name, letters, values))


def _is_own(name: str, value: str) -> bool:
    return name == "PROMPT_COMMAND" and _OWN in value and "\n" not in value


def _without_own(value: str) -> str:
    for own in _OWN_PROMPT:
        value = value.removeprefix(own)
    return "\n".join(line for line in value.split("\n") if f"{{ {_OWN}" not in line)


def _can_be_assigned(letters: str, values: Values) -> bool:
    """True if assigning them evaluates nothing: bash evaluates an integer's value and an index."""
    if not set(letters) <= set("aAcilnrtux="):
        return False
    if "n" in letters:
        return len(values) == 1 and bool(_NAME.fullmatch(values[0][1]))
    if "A" in letters:
        are_keys = all(key and key not in ("@", "*") for key, _ in values)
    elif "a" in letters:
        are_keys = all(_WHOLE_NUMBER.fullmatch(key) for key, _ in values)
    else:
        are_keys = len(values) <= 1
    return are_keys and ("i" not in letters or all(_WHOLE_NUMBER.fullmatch(value) for _, value in values))


# ── for a new shell ──────────────────────────────────────────────────────────────────────────────


def fields(recipe: Recipe) -> bytes:
    """The values a new shell assigns and sets, field by field."""
    return b"".join(part.encode() + b"\0" for part in _fields(recipe))


def _fields(recipe: Recipe) -> Iterator[str]:
    for one in recipe.variables:
        yield from ("variable", one.name, one.attributes, str(len(one.values)))
        for pair in one.values:
            yield from pair
    for name, value in recipe.aliases.items():
        yield from ("alias", name, value)
    for name in recipe.functions:
        if name not in recipe.exported_functions:
            yield from ("unexport", name, "")
    for kind, names in (("shopt", recipe.shell_options), ("set", recipe.set_options)):
        yield from (kind, "", ":".join(name for name in names if name not in _BY_START))
    for signal, action in recipe.traps.items():
        yield from ("trap", signal, action)


def definitions(recipe: Recipe) -> dict[str, str]:
    """Its functions, as bash finds them in its environment."""
    return {f"BASH_FUNC_{name}%%": body for name, body in recipe.functions.items()}


def differences(wanted: Recipe, found: Recipe) -> list[str]:
    """The differences of the new shell, in words."""
    have = {one.name: one for one in found.variables}
    withheld = set(found.withheld)
    told = [
        f"variable {one.name}" for one in wanted.variables if have.get(one.name) != one and one.name not in withheld
    ]
    told += [f"function {name}" for name, body in wanted.functions.items() if found.functions.get(name) != body]
    told += [f"alias {name}" for name, value in wanted.aliases.items() if found.aliases.get(name) != value]
    told += [f"the trap of {name}" for name, action in wanted.traps.items() if found.traps.get(name) != action]
    for kind, one, other in (
        ("set -o", wanted.set_options, found.set_options),
        ("shopt", wanted.shell_options, found.shell_options),
    ):
        told += [f"{kind} {name}" for name in sorted(set(one) ^ set(other)) if name not in _BY_START]
    if wanted.umask != found.umask:
        told.append(f"umask {wanted.umask}")
    return told[:_MOST_NAMED]


def kept_history(text: str) -> list[str]:
    """The last commands, without those that name a secret."""
    return [line for line in text.split("\n") if line and not _names_a_secret(line)][-MOST_HISTORY:]


def _names_a_secret(line: str) -> bool:
    assigned = any(secret_forms.is_telling(name) for name in _ASSIGNED.findall(line))
    return assigned or secret_forms.hide_in_command(line.split()) != line.split() or secret_forms.looks_secret(line)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
