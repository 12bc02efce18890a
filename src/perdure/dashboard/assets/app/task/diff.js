// @ts-check
// What changed between two states: a flat list of places. A change that is opened shows both values whole.

import { useState } from "preact/hooks";
import { get, query } from "../api.js";
import { line, visible } from "../format.js";
import { Empty, html, Skeleton, Trouble, useRead } from "../parts.js";
import { diffSay as say } from "../say/past.js";
import { some } from "../say/common.js";
import { cutOf, spellPath } from "../values/json_lines.js";
import { Value } from "../values/value.js";

const HUE = /** @type {Record<string, string>} */ ({ added: "ok", removed: "bad", changed: "run", moved: "wait" });

/** @param {{task: import("./tabs.js").TaskRef, from: string, to: string}} props */
export function Diff({ task, from, to }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/diff${query({ from, to, brief: true })}`, signal), [task.uid, from, to]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${4} />`;
  if (!value.total) return html`<${Empty} title=${say.same}><p>${say.sameText}</p><//>`;
  const counts = Object.entries(say.kinds).map(([kind, word]) => [value.changes.filter((/** @type {any} */ each) => each.kind === kind).length, word]).filter(([n]) => n);
  return html`<p class="diff-sum meta">${value.total > value.changes.length ? `${say.first(value.changes.length, value.total)} ` : ""}${counts.map(([n, word]) => `${n} ${word}`).join(" · ")}</p>
    <ul class="diff" aria-label=${say.listLabel}>${value.changes.map((/** @type {any} */ each, /** @type {number} */ i) => html`<${Change} key=${i} change=${each} />`)}</ul>
    ${value.left_off.length > 0 && html`<div class="body"><p class="meta">${say.others}</p><ul>${value.left_off.map((/** @type {any} */ [path, n]) => html`<li key=${path.join()}><code>${visible(spellPath(path)) || say.root}</code> <span class="meta">${some(n, "change")}</span></li>`)}</ul></div>`}`;
}

/** @param {{change: any}} props */
function Change({ change }) {
  const [isOpen, setOpen] = useState(false);
  const { kind, before, after, moved_from: was } = change;
  const name = spellPath(change.path) || say.root;
  return html`<li class=${`change is-${kind}`}><button type="button" class="change-line" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class=${`change-mark ${HUE[kind]}`} title=${say.kinds[/** @type {"added"} */ (kind)]}><span aria-hidden="true">${say.marks[/** @type {"added"} */ (kind)]}</span><span class="visually-hidden">${say.kinds[/** @type {"added"} */ (kind)]}</span></span>
      <code class="change-path">${visible(name)}</code>
      <code class="change-value">${kind === "moved" ? say.from(spellPath(was ?? [])) : html`${kind !== "added" && html`<span class="was">${short(before)}</span>`}${kind === "changed" && html` → `}${kind !== "removed" && html`<span class="is">${short(after)}</span>`}`}</code></button>
    ${isOpen && html`<div class="change-sides">${kind !== "added" && kind !== "moved" && html`<div><h3>${say.before}</h3><${Value} value=${before} label=${`${say.before}: ${name}`} /></div>`}${kind !== "removed" && html`<div><h3>${say.after}</h3><${Value} value=${after} label=${`${say.after}: ${name}`} /></div>`}</div>`}</li>`;
}

/** @param {any} value */
const short = (value) => line(cutOf(value)?.begin || (JSON.stringify(value) ?? ""), 90);
