"""Check the types of the dashboard's scripts, inside their templates too.

    python tools/ui/check.py

TypeScript does not look into html`…`. So each script is copied to a scratch folder with its templates written as JSX,
line for line, and `tsc` checks the copy: a misspelt field, a prop that a component does not have, one of the wrong
type, one that is missing. What the API answers comes from openapi.json, as global types `Api.…` (types.py). Nothing
of this is shipped or run.

TypeScript and the types of the vendored modules come through npm, by the versions in package-lock.json, into
.venv/ui. Without node, npm or a registry nothing is checked: exit code 75, and a line that says why.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from ui.api_types import declarations  # noqa: E402
from ui.templates import as_jsx  # noqa: E402

ASSETS = ROOT / "src" / "perdure" / "dashboard" / "assets"
OPENAPI = ROOT / "src" / "perdure" / "server" / "openapi.json"
PACKAGES = ROOT / ".venv" / "ui"
CANNOT_CHECK = 75  # EX_TEMPFAIL
# Words that the frame of the terminal gets from classic scripts, and what a template's tag may be when it is computed.
GLOBALS = """
declare const Terminal: any; declare const FitAddon: any; declare const SearchAddon: any;
declare function AnyTag(props: any): any;
"""
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": True,
    "target": "ES2023",
    "lib": ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "jsx": "react-jsx",
    "jsxImportSource": "preact",
    "skipLibCheck": True,
    "types": [],
}


class CannotCheck(Exception):
    """TypeScript is not here and cannot be fetched."""


def main() -> int:
    try:
        found = check({str(file.relative_to(ASSETS)): file.read_text(encoding="utf-8") for file in scripts()})
    except CannotCheck as why:
        print(f"the dashboard's types are not checked: {why}")
        return CANNOT_CHECK
    for line in found:
        print(line)
    return 1 if found else 0


def scripts() -> list[Path]:
    return sorted([*(ASSETS / "app").rglob("*.js"), *(ASSETS / "frame").glob("*.js")])


def check(sources: dict[str, str]) -> list[str]:
    """What `tsc` finds in scripts, by name; each finding begins with the file and the line of the source.

    Raises:
        CannotCheck: TypeScript is not here and cannot be fetched.
    """
    packages = installed()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "node_modules").symlink_to(packages / "node_modules")
        for name, text in sources.items():
            copy = folder / f"{name}x"  # .jsx, which an import of ".js" finds too
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(as_jsx(text), encoding="utf-8")
        (folder / "api.d.ts").write_text(declarations(json.loads(OPENAPI.read_text(encoding="utf-8"))) + GLOBALS)
        (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "include": ["**/*"]}))
        command = [str(packages / "node_modules" / ".bin" / "tsc"), "--pretty", "false"]
        ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    told = re.split(r"\n(?! )", (ran.stdout + ran.stderr).strip())  # what explains a finding is indented below it
    if ran.returncode and not told[0]:
        return [f"tsc ended with {ran.returncode}"]
    return [re.sub(r"^(\S+?)x\((\d+),\d+\)", r"\1:\2", line) for line in told if line]


def installed() -> Path:
    """The folder with TypeScript, fetched when the lock has changed."""
    lock = (HERE / "package-lock.json").read_bytes()
    mark = PACKAGES / "package-lock.json"
    if mark.exists() and mark.read_bytes() == lock and (PACKAGES / "node_modules" / ".bin" / "tsc").exists():
        return PACKAGES
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise CannotCheck(f"{program} is not installed")
    PACKAGES.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "package.json", PACKAGES / "package.json")
    (PACKAGES / "package-lock.json").write_bytes(lock)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        ran = subprocess.run(command, cwd=PACKAGES, check=False, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        raise CannotCheck("npm did not answer within 180 s") from None
    if ran.returncode:
        mark.unlink()
        raise CannotCheck("npm could not fetch TypeScript: " + (ran.stderr.strip().splitlines() or [""])[0])
    return PACKAGES


if __name__ == "__main__":
    sys.exit(main())
