"""Take the pictures of the dashboard in docs/pictures, from one scripted store (tests/browser/scene.py).

    python tools/make_pictures.py            those that the documentation shows
    python tools/make_pictures.py --all DIR  every page, in both themes and on a phone

They are taken by the tests of tests/browser/test_pictures.py, with the distribution's Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
SHOWN = (
    "now-light",
    "now-dark",
    "task-light",
    "task-dark",
    "inbox-light",
    "checkpoints-light",
    "fork-light",
    "now-320",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the pictures of the dashboard.")
    parser.add_argument("--all", type=Path, metavar="DIR", help="keep every picture there instead")
    wanted = parser.parse_args().all
    with tempfile.TemporaryDirectory() as taken:
        folder = wanted.resolve() if wanted is not None else Path(taken)
        tests = [sys.executable, "-m", "pytest", "-q", "-x", "tests/browser/test_pictures.py"]
        ended = subprocess.run(tests, cwd=ROOT, env={**os.environ, "PERDURE_PICTURES": str(folder)}, check=False)
        if ended.returncode or wanted is not None:
            return ended.returncode
        PICTURES.mkdir(exist_ok=True)
        for name in SHOWN:
            shutil.copyfile(folder / f"{name}.png", PICTURES / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
