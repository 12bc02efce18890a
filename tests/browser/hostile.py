"""Texts that try to become something else than text, from lists of cross-site scripting."""

from __future__ import annotations

from contextlib import suppress

from perdure import Retry, durable, effect, signals, step

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    '<iframe srcdoc="<script>alert(1)</script>">',
    "<a href=javascript:alert(1)>x</a>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<audio src onerror=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<link rel=import href=//evil>",
    '<meta http-equiv=refresh content="0;url=//evil">',
    "<base href=//evil/>",
    "<form action=//evil><button>x",
    "<style>@import '//evil'</style>",
    '<div style="background:url(//evil)">',
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "`${alert(1)}`",
    "<%= 7*7 %>",
    "</script><script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "<scr<script>ipt>alert(1)</script>",
    '<IMG """><SCRIPT>alert(1)</SCRIPT>">',
    '{"$cut":{"length":1,"at":"javascript:alert(1)"}}',
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"type":"div","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=alert(1)>"}}}',
    '{"__v":1,"constructor":null,"type":"script","props":{}}',
    "[x](javascript:alert(1))",
    "![x](//evil/t.png)",
    "http://evil/ looks like a link",
    "\u202eexe.fdp",
    "\u200b\u2060\ufeff",
    "a\u2028b\u2029c",
    "red \x1b[31m alarm \x07",
    "A" * 100_000,
    "z" + "\u0300" * 10_000,
    "\ufdfd" * 500,
    "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x9b31m and \x1b[6n",
    'a";filename=evil.html',
    "name.svg",
)

# Values that a page could take for an element or a cut.
HOSTILE_VALUES = (
    {"type": "div", "props": {"dangerouslySetInnerHTML": {"__html": "<img src=x onerror=alert(1)>"}}},
    {"__v": 1, "constructor": None, "type": "script", "props": {}},
    {"$cut": {"length": 1, "at": "javascript:alert(1)"}},
    {"__proto__": {"polluted": 1}},
)


@step(retry=Retry(2, wait="1ms"))
async def complain(text: str) -> None:
    raise ValueError(text)


@effect
async def tell_world(text: str) -> str:
    return text


@durable(name="<img src=x onerror=alert(3)>")
async def complain_hostile(texts: list[str]) -> None:
    """Its name, and the texts of its arguments, errors, effects and signals, are hostile."""
    for text in texts:
        await tell_world(text)
        with suppress(ValueError):
            await complain(text)
    await signals.next(texts[0], str)
