"""The documents: the shell with its import map and boot data, the frame of the terminal, and their policies.

Boot data is JSON inside a script element that never runs. `<`, U+2028 and U+2029 are escaped, so that nothing in it
can end the element.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from functools import lru_cache
from typing import Any

from perdure.dashboard.asset_files import Assets, assets
from perdure.dashboard.chunks import PAGES

MODULES = {
    "preact": "vendor/preact.mjs",
    "preact/hooks": "vendor/hooks.mjs",
    "@preact/signals-core": "vendor/signals-core.mjs",
    "@preact/signals": "vendor/signals.mjs",
    "htm": "vendor/htm.mjs",
}
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


@lru_cache(maxsize=len(PAGES))
def _frame(page: str) -> tuple[bytes, bytes]:
    head, _, tail = _filled(assets(), "index.html", page).partition("{boot}")
    return head.encode(), tail.encode()


def _filled(all_assets: Assets, name: str, page: str | None = None) -> str:
    base = f"/assets/{all_assets.tree}"
    links = [f'<link rel="modulepreload" href="{base}/{file}">' for file in MODULES.values()]
    if page is not None:
        links += [f'<link rel="modulepreload" href="{base}/{file}">' for file in all_assets.files_of[page]]
    text = all_assets.documents[name]
    preloads = "\n".join(links)
    for mark, value in (("{base}", base), ("{importmap}", import_map(all_assets)), ("{preloads}", preloads)):
        text = text.replace(mark, value)
    return text
