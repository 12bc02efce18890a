"""The documents: the shell with its import map and boot data, the frame of the terminal, and their policies.

Boot data is JSON inside a script element that never runs. `<`, U+2028 and U+2029 are escaped, so that nothing in it
can end the element.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from perdure.dashboard.asset_files import Assets, assets

MODULES = {
    "preact": "vendor/preact.mjs",
    "preact/hooks": "vendor/hooks.mjs",
    "@preact/signals-core": "vendor/signals-core.mjs",
    "@preact/signals": "vendor/signals.mjs",
    "htm": "vendor/htm.mjs",
}
# What each page loads first: its modules with all they import, and its style sheets. The browser would find them one
# after the other.
_PAGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "now": (("app/main.js", "app/pages/now.js"), ("now",)),
    "tasks": (("app/main.js", "app/pages/tasks.js"), ("tasks",)),
    "task": (("app/main.js", "app/pages/task.js", "app/task/journal.js"), ("task", "journal")),
    "inbox": (("app/main.js", "app/pages/inbox.js"), ("inbox",)),
    "operate": (("app/main.js", "app/pages/operate.js"), ()),
}
_IMPORT = re.compile(r"""^(?:import|export)\b[^"'`;]*?from\s*["'](\.[^"']+)["']""", re.MULTILINE)
_PERMISSIONS = "clipboard-write=(self), camera=(), microphone=(), geolocation=(), usb=(), serial=()"
_TERMINAL_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; report-uri /csp"
)


def shell(boot: Any, page: str) -> bytes:
    """The page that every address of the dashboard answers with; `page` is what is loaded first."""
    head, tail = _frame(page)
    return head + escape(boot).encode() + tail


def shell_headers() -> dict[str, str]:
    return {"Content-Security-Policy": policy(), "Permissions-Policy": _PERMISSIONS}


def terminal() -> bytes:
    """The page inside the terminal's frame."""
    return _filled(assets(), "terminal.html").encode()


def terminal_headers() -> dict[str, str]:
    return {"Content-Security-Policy": _TERMINAL_POLICY, "Permissions-Policy": _PERMISSIONS}


@lru_cache(maxsize=1)
def policy() -> str:
    """What the shell may load and run."""
    digest = b64encode(hashlib.sha256(import_map(assets()).encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; frame-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'; report-uri /csp"
    )


def import_map(all_assets: Assets) -> str:
    base = f"/assets/{all_assets.tree}/"
    return json.dumps({"imports": {name: base + file for name, file in MODULES.items()}}, separators=(",", ":"))


def escape(value: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def modules_of(page: str) -> list[str]:
    """The modules that a page needs before it can draw, each before those that import it."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        found[name] = None
        source = assets().by_name[name].content.decode()
        for target in _IMPORT.findall(source):
            visit(posixpath.normpath(posixpath.join(posixpath.dirname(name), target)))

    for name in _PAGES[page][0]:
        visit(name)
    return list(found)


@lru_cache(maxsize=len(_PAGES))
def _frame(page: str) -> tuple[bytes, bytes]:
    head, _, tail = _filled(assets(), "index.html", page).partition("{boot}")
    return head.encode(), tail.encode()


def _filled(all_assets: Assets, name: str, page: str | None = None) -> str:
    base = f"/assets/{all_assets.tree}"
    links = [f'<link rel="modulepreload" href="{base}/{file}">' for file in MODULES.values()]
    if page is not None:
        links += [f'<link rel="stylesheet" href="{base}/css/{style}.css">' for style in _PAGES[page][1]]
        links += [f'<link rel="modulepreload" href="{base}/{file}">' for file in modules_of(page)]
    text = all_assets.documents[name]
    preloads = "\n".join(links)
    for mark, value in (("{base}", base), ("{importmap}", import_map(all_assets)), ("{preloads}", preloads)):
        text = text.replace(mark, value)
    return text
