"""A folder's __init__ is its only door, and the keeper stands apart.

The floors themselves are import-linter contracts in pyproject.toml; these are the rules it cannot say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.make_doors import absolute, doors, names_of, stub_of, table_of

SOURCE = Path(__file__).resolve().parents[2] / "src"
DOORS = set(doors())

# The engines are doors themselves, opened late. _ground is a row of leaves without a common door.
# `app.storage` is used without the layers of a model's memory, which the outer door loads.
# Each framework has a public door of its own: perdure.integrations imports none of them.
DOORS_INSIDE = {
    "perdure._store.sqlite",
    "perdure._store.postgres",
    "perdure.memory.storage",
    "perdure.integrations.agent_framework",
    "perdure.integrations.claude_agent",
    "perdure.integrations.langgraph",
    "perdure.integrations.openai_agents",
    "perdure.integrations.pydantic_ai",
    "perdure.integrations.strands",
}
WITHOUT_DOOR = {  # of the server: one module per noun
    "perdure._ground",
    "perdure._ground.encoding",
    "perdure._ground.secrets",
    "perdure.server.nouns",
    "perdure.server.nouns.automation",
    "perdure.server.nouns.live",
    "perdure.server.nouns.operate",
    "perdure.server.nouns.task",
    "perdure.server.shapes",
}

THE_KEEPER_MAY_IMPORT = {
    "perdure.errors",
    "perdure._ground.ids",
    "perdure._ground.encoding.codec",
    "perdure._ground.lazy_door",
    "perdure._ground.secrets.secret_forms",
}


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def all_modules() -> dict[str, ast.Module]:
    files = sorted((SOURCE / "perdure").rglob("*.py"))
    return {module_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def handed_out(tree: ast.Module) -> set[str]:
    """The names a door gives: of its table, or in its __all__. One may be called like the module it comes from."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and _names(node) == {"__getattr__"} and isinstance(node.value, ast.Call):
            return set(names_of(tree))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and _names(node) == {"__all__"}:
            return {str(item.value) for item in node.value.elts if isinstance(item, ast.Constant)}
    return set()


def _names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def imported(tree: ast.Module, modules: dict[str, ast.Module]) -> Iterator[str]:
    """Modules of ours that this one imports, `from package import module` included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "perdure")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "perdure":
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                by_the_door = node.module in modules and alias.name in handed_out(modules[node.module])
                yield submodule if submodule in modules and not by_the_door else node.module


def is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def packages_around(module: str, packages: set[str]) -> list[str]:
    """The packages of ours that a module lies in, perdure itself aside, the outermost first."""
    parts = module.split(".")
    return [name for end in range(2, len(parts)) if (name := ".".join(parts[:end])) in packages]


def goes_through_the_wall(importer: str, target: str, packages: set[str]) -> bool:
    return any(
        not is_inside(importer, package)
        for package in packages_around(target, packages)
        if package not in WITHOUT_DOOR and target not in DOORS_INSIDE
    )


def test_neighbours_come_in_by_the_door() -> None:
    trees = all_modules()
    packages = {name for name in trees if (SOURCE / name.replace(".", "/")).is_dir()}
    through_the_wall = [
        f"{importer} -> {target}"
        for importer, tree in trees.items()
        for target in imported(tree, trees)
        if goes_through_the_wall(importer, target, packages)
    ]
    assert through_the_wall == []


def test_the_rule_knows_a_wall_from_a_door() -> None:
    packages = {"perdure._store", "perdure._store.sqlite", "perdure._tasks", "perdure._ground"}
    assert goes_through_the_wall("perdure._tasks.verbs", "perdure._store.committer", packages)
    assert goes_through_the_wall("perdure._store.contract", "perdure._store.sqlite.engine", packages)
    assert not goes_through_the_wall("perdure._tasks.verbs", "perdure._store", packages)
    assert not goes_through_the_wall("perdure._tasks.verbs", "perdure._store.sqlite", packages)
    assert not goes_through_the_wall("perdure._store.sqlite.engine", "perdure._store.committer", packages)
    assert not goes_through_the_wall("perdure._tasks.verbs", "perdure._ground.encoding.codec", packages)


def test_the_stub_of_each_door_has_the_names_of_its_table() -> None:
    differing = [str(door) for door in doors() if door.with_suffix(".pyi").read_text(encoding="utf-8") != stub_of(door)]
    assert differing == [], "run python tools/make_doors.py"


def test_no_door_gives_two_things_under_one_name() -> None:
    tables = {str(door): names_of(ast.parse(door.read_text(encoding="utf-8"))) for door in doors()}
    assert [door for door, names in tables.items() if len(names) != len(set(names))] == []


def test_no_name_of_a_door_is_also_a_module_of_its_package() -> None:
    """Once the module was imported, the door would give the module for the name."""
    clashes = {}
    for door in doors():
        if door.name != "__init__.py":
            continue  # a module of the public face has no modules of its own
        homes, _ = table_of(ast.parse(door.read_text(encoding="utf-8")))
        beside = {file.stem for file in door.parent.iterdir()}
        given = {entry.rpartition(" ")[2] for entries in homes.values() for entry in entries}
        clashes[str(door)] = given & beside
    assert {door: names for door, names in clashes.items() if names} == {}


# An attempt and its scopes name each other: one idea in several files.
ONE_CIRCLE = {"perdure._durable.attempt.attempt", "perdure._durable.attempt.scopes"}


def test_no_modules_name_each_other_in_a_circle_not_even_for_types() -> None:
    trees = all_modules()
    circles = circles_of({name: set(imports_of(tree, trees)) - {name} for name, tree in trees.items()})
    assert [sorted(circle) for circle in circles if not circle >= ONE_CIRCLE] == []


def test_a_circle_is_found() -> None:
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def imports_of(tree: ast.Module, trees: dict[str, ast.Module]) -> Iterator[str]:
    """The modules whose names this one imports, through doors, also late or for type checkers only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in trees:
            yield from (home_of(node.module, alias.name, trees) for alias in node.names)


def home_of(module: str, name: str, trees: dict[str, ast.Module]) -> str:
    """The module that defines a name which a door gives; a door inside may give it on."""
    door = SOURCE / module.replace(".", "/") / "__init__.py"
    if door in DOORS:
        homes, _ = table_of(trees[module])
        for home, entries in homes.items():
            for entry in entries:
                if entry.rpartition(" ")[2] == name:
                    return home_of(absolute(module, home), entry.partition(" ")[0], trees)
    return f"{module}.{name}" if f"{module}.{name}" in trees else module


def circles_of(edges: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that reach each other."""
    reach = {name: reached_from(name, edges) for name in edges}
    circles: list[set[str]] = []
    for name in edges:
        circle = {other for other in reach[name] if name in reach.get(other, ())}
        if len(circle) > 1 and circle not in circles:
            circles.append(circle)
    return circles


def reached_from(name: str, edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(edges.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += edges.get(one, ())
    return found


def test_the_keeper_stands_apart() -> None:
    trees = all_modules()
    keeper = {name: tree for name, tree in trees.items() if is_inside(name, "perdure.keeper")}
    reached = {
        f"{name} -> {target}"
        for name, tree in keeper.items()
        for target in imported(tree, trees)
        if target not in THE_KEEPER_MAY_IMPORT and not is_inside(target, "perdure.keeper")
    }
    assert reached == set()
