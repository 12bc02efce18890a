"""Stands in for python in the processes of a mutant's round: `mutated.py NAME FOLDER [python's own arguments]`.

What is told to run by `-m` or `-c` is run here, after the mutant was applied. A program with `-S` knows nothing of
perdure, and is left alone.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    name, folder, *rest = sys.argv[1:]
    options = []
    while rest and rest[0] in ("-I", "-S"):
        options.append(rest.pop(0))
    if "-S" in options or rest[0] not in ("-m", "-c"):
        os.execv(sys.executable, [sys.executable, *options, *rest])
    sys.path[0] = str(Path(__file__).parents[2])
    from tests.honesty import mutants

    mutants.apply(name, folder)
    how, what, *arguments = rest
    sys.argv = [how, *arguments]
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<started>", "exec"), {"__name__": "__main__"})


main()
