"""The checker of the dashboard's types reads templates too, and finds what is wrong in them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from ui import check, templates

PLANTED = """// @ts-check
import { html } from "./parts.js";
import { get } from "./api.js";

/** @param {{task: Api.ListedTask, most?: number}} props */
export function Row({ task, most }) {
  return html`<li title=${task.nmae}>
    <${Cell} text=${task.id} mots=${most} />
    <${Cell} text=${task.attempts} /><${Cell} />
  </li>`;
}

/** @param {{text: string, most?: number}} props */
function Cell({ text, most = 3 }) {
  return html`<b>${text.slice(0, most)}</b>`;
}
export const read = async () => (await get("/v1/tasks/a/journal?limit=3")).itmes;
"""
SAYS = {
    7: "Property 'nmae' does not exist",
    8: "Property 'mots' does not exist",
    9: "Type 'number' is not assignable to type 'string'",
    17: "Property 'itmes' does not exist on type 'ListedOfJournalCall'",
}
STUBS = {
    "app/parts.js": "// @ts-check\nexport const html = /** @type {any} */ (null);\n",
    "app/api.js": "// @ts-check\nexport const get = /** @type {Api.Get} */ (/** @type {any} */ (null));\n",
}


def test_a_template_becomes_jsx_and_every_line_stays_in_its_place():
    source = (
        "const a = /[`/]/.test('html`') ? 1 : `x${html`<i>y</i>`}`; // html`\n"
        'html`<${A} b=${c} ...${d} e f="g ${h} i" tabindex="-1">\n'
        "  {j} <!-- k\n -->${l.map((m) => html`<n key=${m} />`)}<//><${o ? P : Q}>r</${A}>`;\n"
    )
    expected = (
        "const a = /[`/]/.test('html`') ? 1 : `x${(<><i>{\"y\"}</i></>)}`; // html`\n"
        "(<><A b={c} {...(d)} e f={`g ${h} i`} tabindex={-1}>\n"
        '{"  {j} "}\n{l.map((m) => (<><n key={m} /></>))}</A><AnyTag is={o ? P : Q}>{"r"}</AnyTag></>);\n'
    )
    assert templates.as_jsx(source) == expected


def test_what_is_wrong_in_a_template_is_found_at_its_line():
    try:
        found = check.check({**STUBS, "app/planted.js": PLANTED})
    except check.CannotCheck:
        pytest.skip("TypeScript is not here and npm cannot fetch it")
    for line, text in SAYS.items():
        assert any(each.startswith(f"app/planted.js:{line}:") and text in each for each in found), (line, found)
    assert any("'text' is missing" in each and each.startswith("app/planted.js:9:") for each in found), found
