"""Compare the vendored files of the dashboard with VENDOR.toml, or take a new version of one.

    python tools/vendor.py check                  each file has its SHA-256 of VENDOR.toml; no other is there
    python tools/vendor.py check --packages       also compares with the packages, which npm fetches
    python tools/vendor.py update NAME VERSION    fetches NAME with npm, replaces its files, prints its exports

npm is asked by package name and version only: which registry it reads is a matter of the machine.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LISTS = (
    ROOT / "src" / "perdure" / "dashboard" / "assets" / "vendor" / "VENDOR.toml",
    ROOT / "tests" / "browser" / "vendor" / "VENDOR.toml",
)
EXPORTED = re.compile(rb"export\s*\{([^}]*)\}")
HEAD = "# Files of others, byte for byte as published. Written by tools/vendor.py; checked by it and by the tests.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check")
    check.add_argument("--packages", action="store_true")
    update = verbs.add_parser("update")
    update.add_argument("name")
    update.add_argument("version")
    given = parser.parse_args()
    if given.verb == "update":
        return take(given.name, given.version)
    found = [line for file in LISTS for line in problems(file)]
    if given.packages:
        found += [line for file in LISTS for line in package_problems(file)]
    print("\n".join(found) or "the vendored files are as VENDOR.toml tells")
    return 1 if found else 0


def read(file: Path) -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
    return packages


def problems(file: Path) -> list[str]:
    """What differs between a folder of vendored files and its VENDOR.toml."""
    found, known = [], {file}
    for package in read(file):
        for kept in package["files"]:
            path = (file.parent / kept["to"]).resolve()
            known.add(path)
            if not path.is_file():
                found.append(f"{kept['to']} is missing")
            elif sha256(path.read_bytes()) != kept["sha256"]:
                found.append(f"{kept['to']} differs from {package['name']} {package['version']}")
    others = {path for path in file.parent.rglob("*") if path.is_file()} - known
    return found + [f"{path.relative_to(file.parent)} is not in VENDOR.toml" for path in sorted(others)]


def package_problems(file: Path) -> list[str]:
    """What differs between VENDOR.toml and the packages as npm gives them."""
    found = []
    for package in read(file):
        integrity, members = fetch(package["name"], package["version"])
        if integrity != package["integrity"]:
            found.append(f"{package['name']} {package['version']} has the integrity {integrity}")
        found += [
            f"{kept['from']} of {package['name']} {package['version']} is not what is vendored"
            for kept in package["files"]
            if sha256(members.get(kept["from"], b"")) != kept["sha256"]
        ]
    return found


def take(name: str, version: str) -> int:
    for file in LISTS:
        packages = read(file)
        for package in packages:
            if package["name"] != name:
                continue
            integrity, members = fetch(name, version)
            for kept in package["files"]:
                path, content = file.parent / kept["to"], members[kept["from"]]
                print_exports(kept["to"], path.read_bytes() if path.exists() else b"", content)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                kept["sha256"] = sha256(content)
            package["version"], package["integrity"] = version, integrity
            file.write_text(as_toml(packages), encoding="utf-8")
            return 0
    print(f"{name} is not in VENDOR.toml", file=sys.stderr)
    return 1


def fetch(name: str, version: str) -> tuple[str, dict[str, bytes]]:
    """The integrity and the files of a package."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"{name}@{version}", "--json", "--pack-destination", folder]
        told = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
        packed = Path(folder) / json.loads(told)[0]["filename"].replace("@", "").replace("/", "-")
        content = packed.read_bytes()
        with tarfile.open(packed) as archive:
            members = {
                member.name.partition("/")[2]: opened.read()
                for member in archive
                if member.isfile() and (opened := archive.extractfile(member)) is not None
            }
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(), members


def print_exports(name: str, before: bytes, after: bytes) -> None:
    had, has = exports(before), exports(after)
    for sign, names in (("-", had - has), ("+", has - had)):
        for each in sorted(names):
            print(f"{name}: {sign} {each}")


def exports(content: bytes) -> set[str]:
    lists = [part for found in EXPORTED.findall(content) for part in found.decode().split(",")]
    return {part.split(" as ")[-1].strip() for part in lists if part.strip()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def as_toml(packages: list[dict[str, Any]]) -> str:
    lines = [HEAD]
    for package in packages:
        lines.append("[[package]]")
        lines += [
            f"{name} = {json.dumps(package[name])}" for name in ("name", "version", "integrity", "licence", "why")
        ]
        for kept in package["files"]:
            lines.append("[[package.files]]")
            lines += [f"{name} = {json.dumps(kept[name])}" for name in ("from", "to", "sha256")]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
