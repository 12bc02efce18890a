"""What the dashboard serves of others is byte for byte what they published, and nothing it serves asks another host."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from perdure.dashboard import shell

pytestmark = pytest.mark.threat("T27")
ASSETS = Path(shell.__file__).parent / "assets"
VENDOR = ASSETS / "vendor"
OURS = sorted(file for folder in ("app", "css") for file in (ASSETS / folder).rglob("*") if file.is_file())
PAGES = [ASSETS / "index.html", ASSETS / "terminal.html"]
# `from` follows a closing brace, a star or a name, and is not the end of a text.
IMPORT = re.compile(r"""(?:[}*\w]\s+from\s*|}\s*from\s*|\bimport\s*\(?\s*)["']([^"'\n,]+)["']""")
ADDRESS = re.compile(r"""(?:https?:|(?<=["'`(]))//[a-z0-9.-]+\.[a-z]{2,}""", re.IGNORECASE)


def test_every_file_of_others_is_listed_with_its_hash_and_has_it():
    listed = {}
    for package in tomllib.loads((VENDOR / "VENDOR.toml").read_text(encoding="utf-8"))["package"]:
        assert package["version"] and package["licence"] and package["why"]
        assert package["integrity"].startswith("sha512-")
        listed |= {file["to"]: file["sha256"] for file in package["files"]}
    there = {str(file.relative_to(VENDOR)) for file in VENDOR.rglob("*") if file.is_file()} - {"VENDOR.toml"}
    fonts = {name for name in listed if name.startswith("../")}
    assert there == listed.keys() - fonts
    for name, digest in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_no_module_imports_what_is_neither_ours_nor_in_the_import_map():
    outside = []
    for file in OURS:
        for name in IMPORT.findall(file.read_text(encoding="utf-8")) if file.suffix == ".js" else ():
            is_ours = name.startswith(("./", "../"))
            if not (is_ours and (file.parent / name).resolve().is_relative_to(ASSETS)) and name not in shell.MODULES:
                outside.append((file.name, name))
    assert outside == []


def test_nothing_of_ours_names_another_host():
    named = [
        (file.name, found)
        for file in (*OURS, *PAGES)
        for found in ADDRESS.findall(file.read_text(encoding="utf-8"))
        if not found.startswith(("http://www.w3.org", "https://perdure.dev/problems"))
    ]
    assert named == []
