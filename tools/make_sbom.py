"""Write the software bill of materials of a release: CycloneDX 1.6, as JSON.

    python tools/make_sbom.py > perdure.cdx.json

It names what `pip install 'perdure[all]'` brings when every version is that of requirements/ci.txt, with the hashes of
the lock, and the JavaScript packages whose files the wheel carries. Tools for tests and documentation are left out. The
same sources give the same file: it has no time and no random number.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "ci.txt"
VENDORED = ROOT / "src" / "perdure" / "dashboard" / "assets" / "vendor" / "VENDOR.toml"
OURS = "perdure (pyproject.toml)"  # how the lock names what perdure itself asks for, its extras included
_PIN = re.compile(r"(?P<name>[a-z0-9][\w.-]*)(?:\[[\w,-]+\])?==(?P<version>[^\s;]+)(?: *; *(?P<marker>.+?))? *\\?$")


@dataclass
class Locked:
    """One package of the lock."""

    name: str
    version: str
    marker: str
    hashes: list[str] = field(default_factory=list)
    asked_by: set[str] = field(default_factory=set)


def read_lock(text: str) -> dict[str, Locked]:
    """Each package of a lock by its name. Where two versions are locked for different systems, the first one."""
    found: dict[str, Locked] = {}
    last: Locked | None = None
    for line in text.splitlines():
        if pin := _PIN.match(line):
            last = Locked(pin["name"], pin["version"], pin["marker"] or "")
            found.setdefault(last.name, last)
        elif last is not None and (hashed := re.search(r"--hash=sha256:([0-9a-f]{64})", line)):
            last.hashes.append(hashed[1])
        elif last is not None and (asker := re.fullmatch(r" +#(?: via)? +(\S.*)", line)):
            last.asked_by.add(asker[1])
    return found


def shipped(lock: dict[str, Locked]) -> dict[str, Locked]:
    """What perdure with all its extras brings, directly or through another package."""
    found = {name: one for name, one in lock.items() if OURS in one.asked_by}
    while more := {name: one for name, one in lock.items() if name not in found and one.asked_by & found.keys()}:
        found |= more
    return dict(sorted(found.items()))


def bill(project: dict[str, Any], packages: dict[str, Locked], vendored: list[dict[str, Any]]) -> dict[str, Any]:
    """The bill as one JSON value."""
    own = _reference("pypi", project["name"], project["version"])
    references = {name: _reference("pypi", name, one.version) for name, one in packages.items()}
    scripts = [_script(one) for one in vendored]
    direct = [references[name] for name, one in packages.items() if OURS in one.asked_by]
    graph = {own: [*direct, *(script["bom-ref"] for script in scripts)]}
    for name, reference in references.items():
        graph[reference] = [references[other] for other, one in packages.items() if name in one.asked_by]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [*(_package(one, references[name]) for name, one in packages.items()), *scripts],
        "dependencies": [{"ref": one, "dependsOn": sorted(others)} for one, others in graph.items()],
    }


def _reference(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{name.replace('@', '%40')}@{version}"


def _package(one: Locked, reference: str) -> dict[str, Any]:
    # One hash for each file of the release that the lock allows: all wheels and the source archive.
    files = [
        {"type": "distribution", "url": reference, "hashes": [{"alg": "SHA-256", "content": digest}]}
        for digest in one.hashes
    ]
    marker = [{"name": "perdure:marker", "value": one.marker}] if one.marker else []
    return {
        "type": "library",
        "bom-ref": reference,
        "name": one.name,
        "version": one.version,
        "purl": reference,
        "externalReferences": files,
        **({"properties": marker} if marker else {}),
    }


def _script(package: dict[str, Any]) -> dict[str, Any]:
    reference = _reference("npm", package["name"], package["version"])
    digest = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
        "hashes": [{"alg": "SHA-512", "content": digest}],
        "licenses": [{"license": {"id": package["licence"]}}],
    }


def make() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    vendored = tomllib.loads(VENDORED.read_text(encoding="utf-8"))["package"]
    return bill(project, shipped(read_lock(LOCK.read_text(encoding="utf-8"))), vendored)


if __name__ == "__main__":
    print(json.dumps(make(), indent=2))
