"""A script that knows nothing of perdure, and finds its place again by its own output.

perdure run copy --restart on-kill -- python examples/agents/plain_script.py     # kill it: it is started again
"""

import sys
from pathlib import Path

TARGET = Path("copied.txt")
begun = len(TARGET.read_text().splitlines()) if TARGET.exists() else 0
with TARGET.open("a") as target:
    for number in range(begun + 1, 11):
        target.write(f"row {number}\n")
        target.flush()
        print("row", number, flush=True)
        if "--slowly" in sys.argv:
            sys.stdin.readline()
print("done: 10 rows", flush=True)
