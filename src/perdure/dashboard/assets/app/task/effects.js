// @ts-check
// What a task has done to the world. Uncertain ones are settled here.

import { useEffect } from "preact/hooks";
import { get, query } from "../api.js";
import { saveFile } from "../download.js";
import { length, time } from "../format.js";
import { Decision } from "../inbox/decision.js";
import { Button, Chip, Code, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { place, setQuery } from "../router.js";
import { effectSay as say } from "../say/ledger.js";

const KINDS = /** @type {Record<string, string>} */ ({ done: "completed", failed: "failed", uncertain: "uncertain", open: "working", undone: "cancelled" });
const COLUMNS = ["name", "state", "key", "tries", "began_at", "ended_at", "undone_at", "settled", "path", "line", "call", "error"];

/** @param {{task: import("./tabs.js").TaskRef, turn: number, onCount: (n: number) => void}} props */
export default function Effects({ task, turn, onCount }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/effects`, signal), [task.uid, turn]);
  const isUnsure = value?.items.some((/** @type {any} */ each) => each.state === "uncertain");
  const { value: asked, reload } = useRead(async (signal) => (isUnsure ? (await get(`/v1/inbox${query({ task: task.id, kind: "effect" })}`, signal)).items : []), [task.uid, turn, isUnsure]);
  useEffect(() => { if (value) onCount(value.items.length); }, [value]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${4} />`;
  if (!value.items.length) return html`<${Empty} title=${say.none}><p>${say.noneText}</p><//>`;
  const only = place.value.query.get("only") ?? "all";
  const fits = (/** @type {any} */ each, /** @type {string} */ kind) => kind === "all" || (kind === "undone" ? Boolean(each.undone_at) : each.state === kind);
  const shown = value.items.filter((/** @type {any} */ each) => fits(each, only));
  return html`<div class="past-tools"><div class="seg" role="group" aria-label=${say.filtersLabel}>${Object.entries(say.filters).map(([kind, word]) => html`<button type="button" key=${kind} aria-pressed=${kind === only} onClick=${() => setQuery({ only: kind === "all" ? null : kind })}>${word} <b>${value.items.filter((/** @type {any} */ each) => fits(each, kind)).length}</b></button>`)}</div>
      <span class="end acts"><span class="meta">${say.export}</span><${Button} small onClick=${() => saveCsv(value.items, task.id)}>${say.csv}<//><a class="btn small" href=${`${task.path}/effects`} target="_blank" rel="noopener">${say.json}</a></span></div>
    ${!shown.length && html`<${Empty}><p>${say.noneOfKind}</p><//>`}
    <ul class="cards" aria-label=${say.label}>${shown.map((/** @type {any} */ each) => html`<${Effect} key=${`${each.line} ${each.key}`} effect=${each} pause=${asked?.find((/** @type {any} */ one) => one.effect?.key === each.key)} onDone=${reload} />`)}</ul>`;
}

/** @param {{effect: any, pause: any, onDone: () => void}} props */
function Effect({ effect: each, pause, onDone }) {
  const kind = each.undone_at ? "undone" : each.state;
  return html`<li><div class="row-top"><${Chip} kind=${KINDS[kind] ?? "idle"} word=${kind} /><code class="id"><${Said} most=${300}>${each.call ?? each.name}<//></code>
      <span class="end"><${Moment} at=${each.began_at} />${each.ended_at && html` · ${length(time(each.ended_at) - time(each.began_at))}`}</span></div>
    <dl class="pairs inline"><div><dt>${say.columns.key}</dt><dd><${Code} class="key" copy=${each.key}>${each.key}<//></dd></div>
      ${each.tries > 1 && html`<div><dt>${say.columns.tries}</dt><dd>${each.tries}</dd></div>`}
      ${each.settled && html`<div><dd>${say.settled(each.settled)}</dd></div>`}${each.undone_at && html`<div><dt>${say.undone}</dt><dd><${Moment} at=${each.undone_at} /></dd></div>`}
      ${each.has_undo && !each.undone_at && html`<div><dd>${say.undo}</dd></div>`}${each.is_inherited && html`<div><dd>${say.inherited}</dd></div>`}</dl>
    ${each.error && html`<p class="bad-ink"><${Said} lines>${typeof each.error === "string" ? each.error : `${each.error.type ?? ""}: ${each.error.message ?? ""}`}<//></p>`}
    ${pause && html`<${Decision} pause=${pause} onDone=${onDone} />`}</li>`;
}

/** @param {any[]} items @param {string} id */
function saveCsv(items, id) {
  const text = [COLUMNS.join(","), ...items.map((each) => COLUMNS.map((name) => cell(each[name])).join(","))].join("\r\n");
  saveFile(say.file(id), "text/csv", [text]);
}

/** One cell; a text that a spreadsheet would run as a formula is kept a text. @param {any} value */
function cell(value) {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
