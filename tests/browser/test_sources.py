"""What holds for every file of the dashboard, without a browser."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from perdure.dashboard import shell
from perdure.dashboard.asset_files import assets
from perdure.dashboard.chunks import PAGES, Chunks, imports_of, modules_of

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "src" / "perdure" / "dashboard" / "assets"
SCRIPTS = sorted([*(ASSETS / "app").rglob("*.js"), *ASSETS.glob("frame/*.js")])
STYLES = sorted((ASSETS / "css").glob("*.css"))
LONGEST = 300
REFUSED = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySetInnerHTML"
    r"|setAttribute\(\s*[\"'](?:on|style)|\bset(?:Timeout|Interval)\(\s*[\"'`]"
)
IMPORT = re.compile(
    r"""(?:^|\n)\s*(?:import|export)\b[^"'`;]*?from\s*["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)"""
)
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b(?![-\w])|\b(?:rgb|hsl|oklch)a?\(")
# A text between two tags of a template: it would be seen by people, and belongs into app/say.
TEXT = re.compile(r">([^<>{}$`]*[A-Za-z]{2}[^<>{}$`]*)</")
ADDRESS = re.compile(rb"https?://[^\s\"'`)]+")


def ids(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ASSETS)) for file in files]


@pytest.mark.parametrize("file", SCRIPTS, ids=ids(SCRIPTS))
def test_a_script_is_checked_short_and_says_what_it_owns(file):
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "// @ts-check"
    assert lines[1].startswith("// ")
    assert len(lines) <= LONGEST
    assert not REFUSED.findall(text)
    assert not COLOUR.findall(re.sub(r"[#~?][\w$-]*\{", "", text)) or "say" in file.parts


@pytest.mark.parametrize("file", SCRIPTS, ids=ids(SCRIPTS))
def test_an_import_is_relative_and_leads_to_a_file_or_is_in_the_import_map(file):
    for one, other in IMPORT.findall(file.read_text(encoding="utf-8")):
        name = one or other
        if name.startswith("."):
            assert (file.parent / name).resolve().is_file(), name
        else:
            assert name in shell.MODULES, name


@pytest.mark.parametrize("file", [file for file in SCRIPTS if "say" not in file.parts])
def test_every_text_is_in_one_place(file):
    text = "\n".join(
        line for line in file.read_text(encoding="utf-8").splitlines() if not re.match(r"\s*(//|\*|/\*)", line)
    )
    assert [found for found in TEXT.findall(text) if "=>" not in found] == []


@pytest.mark.parametrize("file", [file for file in STYLES if file.name != "tokens.css"], ids=lambda file: file.name)
def test_colours_are_named_in_one_file(file):
    assert COLOUR.findall(file.read_text(encoding="utf-8")) == []


def test_a_link_from_data_goes_through_the_one_gate():
    for file in SCRIPTS:
        for name in re.findall(r"href=\$\{([^}]+)\}", file.read_text(encoding="utf-8")):
            assert not re.search(r"\b(?:url|link|address_of|job)\b", name) or "safeHref" in name, f"{file.name}: {name}"


def test_vendored_files_are_as_published(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import vendor

    assert [line for file in vendor.LISTS for line in vendor.problems(file)] == []
    sys.modules.pop("vendor", None)


@pytest.mark.req("R145")
def test_no_asset_names_another_host():
    own = [
        file
        for file in ASSETS.rglob("*")
        if file.is_file() and "vendor" not in file.parts and "fonts" not in file.parts
    ]
    found = {
        (file.name, address)
        for file in own
        for address in ADDRESS.findall(file.read_bytes())
        if address != b"http://www.w3.org/2000/svg"
    }
    assert found == set()


MODULES = {
    str(file.relative_to(ASSETS)): file.read_text(encoding="utf-8") for file in SCRIPTS if file.name != "theme.js"
}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_needs_comes_in_two_files_and_heavy_tools_come_later(page):
    found = modules_of(MODULES, page)
    assert {"app/main.js", "app/shell.js"} <= {*found}
    assert not {"app/search.js", "app/help.js", "app/forms/form.js", "app/tasks/bulk.js"} & {*found}
    assert len(assets().files_of[page]) <= 2
    for name in found:
        text = MODULES[name]
        assert not re.search(r"^export (let|var|\{|\*)", text, re.MULTILINE), f"{name}: exports stay what they were"
        assert not re.search(r"^import [^;]*$", text, re.MULTILINE), f"{name}: an import is one line"
        before = found[: found.index(name)]
        assert {*imports_of(MODULES, name)} <= {*before}, f"{name}: two modules import each other"


def test_a_module_is_served_once():
    chunks = Chunks(MODULES)
    served = chunks.served()
    assert {*served} == {*MODULES} - {*chunks.of} | {*chunks.of.values()}
    for name, text in MODULES.items():
        own = re.search(r"^export (?:default )?((?:async )?(?:function|const|class) \w+)", text, re.MULTILINE)
        if own is None:
            continue
        holders = [file for file, joined in served.items() if re.search(rf"{own[1]}\b", joined)]
        assert chunks.of.get(name, name) in holders


# ── contrast ─────────────────────────────────────────────────────────────────────────────────────

HUES = ("run", "you", "wait", "ok", "bad", "unsure", "off")
TEXTS = [
    *((ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in ("bg", "surface", "sunken", "hover")),
    *((hue, ground) for hue in HUES for ground in (f"{hue}-soft", "surface", "bg")),
    *((code, ground) for code in ("code-str", "code-num", "code-key") for ground in ("surface", "sunken")),
]
GRAPHICS = [
    *((f"{hue}-fill", "surface") for hue in HUES),
    ("edge", "surface"),
    ("edge", "bg"),
    ("focus", "surface"),
    ("focus", "bg"),
]


SAYS = re.compile(r"^export const (\w+) = (\{[^\n]*\}|\{.*?^\});$", re.MULTILINE | re.DOTALL)
# Strings, templates and comments, which can hold braces, and every word with a colon.
TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`|//[^\n]*|/\*.*?\*/|[{([\])}]|\b(\w+):", re.DOTALL)


CODE = [each.read_text(encoding="utf-8") for each in SCRIPTS if "say" not in each.parts]


def own_names(body: str) -> list[str]:
    """The names of an object's own properties, without those of objects inside it."""
    depth, found = 0, []
    for token in TOKEN.finditer(body):
        depth += {"{": 1, "(": 1, "[": 1}.get(token[0], 0) - {"}": 1, ")": 1, "]": 1}.get(token[0], 0)
        if token[1] and depth == 1:
            found.append(token[1])
    return found


@pytest.mark.parametrize("file", [file for file in SCRIPTS if "say" in file.parts], ids=lambda file: file.name)
def test_every_text_is_shown_somewhere(file):
    unused = []
    for name, body in SAYS.findall(file.read_text(encoding="utf-8")):
        users = "\n".join(text for text in CODE if name in text)
        named = "|".join({name, *re.findall(rf"\b{name} as (\w+)", users)})
        used = set(re.findall(rf"\b(?:{named})\??\.(\w+)", users))
        if re.search(rf"\b(?:{named})\[", users):
            continue  # its texts are looked up by names of the API
        unused += [f"{name}.{key}" for key in own_names(body) if key not in used]
    assert unused == []


def themes() -> dict[str, dict[str, str]]:
    text = (ASSETS / "css" / "tokens.css").read_text(encoding="utf-8")
    light, dark, auto = (part.partition("}")[0] for part in re.split(r":root[^{]*\{", text)[1:4])
    assert re.sub(r"\s", "", dark) == re.sub(r"\s", "", auto), "the dark theme is written twice, and differs"
    found = {"light": dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", light))}
    found["dark"] = {**found["light"], **dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", dark))}
    return found


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_pair_of_colours_can_be_read(theme):
    colours = themes()[theme]
    weak = [f"{a} on {b}" for a, b in TEXTS if contrast(colours[a], colours[b]) < 4.5]
    weak += [f"{a} on {b}" for a, b in GRAPHICS if contrast(colours[a], colours[b]) < 3]
    assert weak == []
