"""Serve the modules of a page together: one file where the browser would ask for twenty.

The sources stay small modules, served one by one when something loads them later. What a page needs before it can draw
is joined when the server starts: modules that the first page or several pages need are in `app/main.js`, the others
of a page in its own `app/pages/NAME.js`. Each module keeps a scope of its own inside the file, and a file exports its
modules under their names:

    import * as x0 from "preact";
    const m0 = (() => { const { h } = x0; …the module as it is written…; return { html, Chip }; })();
    export { m0 as "app/parts.js" };

Imports of a joined module, from wherever, are led to the file that holds it, so that there is one of each. Our modules
are written so that this is a matter of lines (tests/browser/test_sources.py): an import or export is one line and
begins it, nothing exported is assigned again, and no two modules import each other.

Owns which module is in which file, and how it is written there.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

ENTRY = "app/main.js"
FIRST = "now"  # the page whose modules are in the entry
# What each page needs before it can draw, beside the entry, and so is joined.
PAGES: Mapping[str, tuple[str, ...]] = {
    "now": ("app/pages/now.js",),
    "tasks": ("app/pages/tasks.js",),
    "task": ("app/pages/task.js", "app/task/journal.js"),
    "inbox": ("app/pages/inbox.js",),
    "operate": ("app/pages/operate.js",),
}
_NAMED = r"[A-Za-z_$][\w$]*"
_IMPORT = re.compile(rf'^import (?:({_NAMED}) from |\{{ ([^}}]*) \}} from )?"([^"]+)";$', re.MULTILINE)
_PASSED_ON = re.compile(r'^export \{ ([^}]*) \} from "([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(rf"^export (default )?((?:async )?function\*?|const|class) ({_NAMED})", re.MULTILINE)
_LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')


@dataclass
class Chunks:
    """The modules of the dashboard, joined."""

    sources: Mapping[str, str]  # "app/main.js": what is written there
    of: dict[str, str] = field(default_factory=dict)  # a joined module, and the file that holds it

    def __post_init__(self) -> None:
        needed = {page: set(modules_of(self.sources, page)) for page in PAGES}
        users = Counter(name for names in needed.values() for name in names)
        shared = needed[FIRST] | {name for name, count in users.items() if count > 1}
        for page, names in needed.items():
            own = names - shared
            self.of |= dict.fromkeys(own, PAGES[page][0])
        self.of |= dict.fromkeys(shared, ENTRY)

    def served(self) -> dict[str, str]:
        """Every file as it is sent. A module that is joined to another file is not sent alone."""
        files = {name: self._alone(name) for name in self.sources if name not in self.of}
        return files | {file: self._joined(file) for file in set(self.of.values())}

    def files_of(self, page: str) -> list[str]:
        """The files that a page loads first."""
        return list(dict.fromkeys(self.of[name] for name in modules_of(self.sources, page)))

    # ── a file of several modules ────────────────────────────────────────────────────────────────

    def _joined(self, file: str) -> str:
        modules = [name for name in self._in_order() if self.of[name] == file]
        places = {name: f"m{number}" for number, name in enumerate(modules)}
        outside: dict[tuple[str, str], str] = {}  # an import from another file, and what it is called here
        bodies = []
        for name in modules:
            body = self._body(name, places, outside)
            inner = f"{body}\nreturn {{ {', '.join(_exports(self.sources[name]))} }};"
            if name == ENTRY:  # it waits for a session before it draws
                bodies.append(f"// {name}\nconst {places[name]} = await (async () => {{\n{inner}\n}})();")
            else:
                bodies.append(f"// {name}\nconst {places[name]} = (() => {{\n{inner}\n}})();")
        heads = [f'import {what.replace("?", called)} from "{source}";' for (what, source), called in outside.items()]
        given = ", ".join(f'{place} as "{name}"' for name, place in places.items())
        entry = posixpath.normpath(file)
        default = f"\nexport default {places[entry]}.default;" if file != ENTRY else ""
        return "\n".join([*heads, *bodies, f"export {{ {given} }};{default}", ""])

    def _body(self, name: str, places: Mapping[str, str], outside: dict[tuple[str, str], str]) -> str:
        file = self.of[name]

        def called(source: str) -> str:
            """What the module that is imported is called in this file."""
            if not source.startswith("."):
                return outside.setdefault(("* as ?", source), f"x{len(outside)}")
            target = _resolved(name, source)
            if target in places:
                return places[target]
            if target in self.of:
                key = (f'{{ "{target}" as ? }}', _relative(file, self.of[target]))
            else:
                key = ("* as ?", _relative(file, target))
            return outside.setdefault(key, f"x{len(outside)}")

        def taken(found: re.Match[str]) -> str:
            default, names, source = found.groups()
            here = called(source)
            return _constant(default, names, here)

        text = _IMPORT.sub(taken, self.sources[name])
        text = _LATER.sub(lambda found: self._later(name, file, found[1], places), text)
        return _EXPORT.sub(lambda found: f"{found[2]} {found[3]}", text)

    def _later(self, name: str, file: str, source: str, places: Mapping[str, str]) -> str:
        target = _resolved(name, source)
        if target in places:
            return f"Promise.resolve({places[target]})"
        if target not in self.of:
            return f'import("{_relative(file, target)}")'
        holder = self.of[target]
        return f'import("{_relative(file, holder)}").then((file) => file["{target}"])'

    def _in_order(self) -> Iterator[str]:
        """Each joined module after those it imports."""
        seen: dict[str, None] = {}
        for page in PAGES:
            for name in modules_of(self.sources, page):
                seen.setdefault(name)
        yield from (name for name in seen if name != ENTRY)
        yield ENTRY

    # ── a module that is served alone ────────────────────────────────────────────────────────────

    def _alone(self, name: str) -> str:
        numbers = iter(range(10_000))

        def taken(found: re.Match[str]) -> str:
            default, names, source = found.groups()
            target = _resolved(name, source) if source.startswith(".") else source
            if target not in self.of:
                return found[0]
            here = f"m${next(numbers)}"
            line = f'import {{ "{target}" as {here} }} from "{_relative(name, self.of[target])}";'
            return f"{line} {_constant(default, names, here)}"

        text = _IMPORT.sub(taken, self.sources[name])
        return _LATER.sub(lambda found: self._later(name, name, found[1], {}), text)


def modules_of(sources: Mapping[str, str], page: str) -> list[str]:
    """The modules that a page needs before it can draw, each after those it imports."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        for target in imports_of(sources, name):
            visit(target)
        found[name] = None

    for name in (ENTRY, *PAGES[page]):
        visit(name)
    return list(found)


def imports_of(sources: Mapping[str, str], name: str) -> list[str]:
    """Our own modules that a module imports at once."""
    text = sources[name]
    given = [*(found[3] for found in _IMPORT.finditer(text)), *(found[2] for found in _PASSED_ON.finditer(text))]
    return [_resolved(name, source) for source in given if source.startswith(".")]


def _constant(default: str | None, names: str | None, module: str) -> str:
    """What an import gives, taken from the module that stands for it."""
    if default:
        return f"const {default} = {module}.default;"
    return f"const {{ {names.replace(' as ', ': ')} }} = {module};" if names else ""


def _exports(text: str) -> list[str]:
    return [f"default: {found[3]}" if found[1] else found[3] for found in _EXPORT.finditer(text)]


def _resolved(name: str, source: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), source))


def _relative(name: str, target: str) -> str:
    found = posixpath.relpath(target, posixpath.dirname(name))
    return found if found.startswith(".") else f"./{found}"
