"""Write what is made from the code of the server: the OpenAPI file and the pages of the reference.

python tools/make_openapi.py            writes src/perdure/server/openapi.json, and http.md, events.md and metrics.md of
                                        docs/reference
python tools/make_openapi.py --check    says which differ, and exits with 1 if one does
"""

from __future__ import annotations

import sys
from pathlib import Path

from perdure._tasks.webhooks import events_page
from perdure.server.shapes import openapi, reference
from perdure.server.table import routes_by_noun
from perdure.server.telemetry import metrics_page

ROOT = Path(__file__).resolve().parents[1]


def texts() -> dict[Path, str]:
    """What the files have to hold."""
    nouns = routes_by_noun()
    return {
        ROOT / "src/perdure/server/openapi.json": openapi.as_text(nouns),
        ROOT / "docs/reference/http.md": reference.as_text(nouns),
        ROOT / "docs/reference/metrics.md": metrics_page(),
        ROOT / "docs/reference/events.md": events_page(),
    }


def main() -> int:
    stale = {
        file: text for file, text in texts().items() if not file.exists() or file.read_text(encoding="utf-8") != text
    }
    is_check = "--check" in sys.argv[1:]
    for file, text in stale.items():
        if not is_check:
            file.write_text(text, encoding="utf-8")
        print(f"{'differs' if is_check else 'wrote'}: {file.relative_to(ROOT)}")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
