"""A folder's __init__ is its only door, and the keeper stands apart.

The floors themselves are import-linter contracts in pyproject.toml; these are the rules it cannot say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.make_doors import doors, names_of, stub_of, table_of

SOURCE = Path(__file__).resolve().parents[2] / "src"

# The engines are doors themselves, opened late. _ground is a row of leaves without a common door.
# `app.storage` is used without the layers of a model's memory, which the outer door loads.
# Each framework has a public door of its own: perdure.integrations imports none of them.
DOORS_INSIDE = {
    "perdure._store.sqlite",
    "perdure._store.postgres",
    "perdure.memory.storage",
    "perdure.integrations.claude_agent",
    "perdure.integrations.langgraph",
    "perdure.integrations.openai_agents",
    "perdure.integrations.pydantic_ai",
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
