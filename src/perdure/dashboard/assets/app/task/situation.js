// @ts-check
// Why a task is, or is not, running: the sentence, what proves it, what is kept, and the ways on.

import { Act, Button, Code, HUES, html, Moment, Said, useRead } from "../parts.js";
import { get, newOnce, query, send } from "../api.js";
import { ShortQuestion } from "../inbox/question.js";
import { reread } from "../stream.js";
import { useMemo, useState } from "preact/hooks";
import { situationSay } from "../say/common.js";
import { taskSay } from "../say/task.js";
import { may } from "../store.js";

const QUIET = ["completed", "cancelled"];

/** @param {{task: import("./tabs.js").TaskRef, situation: any, record: any, onDone: () => void}} props */
export function SituationPanel({ task, situation, record, onDone }) {
  const headline = situation.headline || situation.say;
  if (!headline && QUIET.includes(situation.kind)) return null;
  return html`<section class=${`panel situation edge-${HUES[situation.kind] ?? "off"}`} aria-labelledby="situation-head">
    <div class="situation-top"><h2 id="situation-head"><${Said} lines>${headline || situationSay[situation.kind]}<//></h2>
      <span class="end">${situation.since && html`<${Moment} at=${situation.since} before=${taskSay.since} />`}</span></div>
    ${(situation.details ?? []).map((/** @type {string} */ text, /** @type {number} */ i) => html`<p key=${i} class="detail"><${Said} lines>${text}<//></p>`)}
    ${situation.next && !situation.you && html`<p class="detail"><${Said} lines>${situation.next}<//></p>`}
    ${situation.last_error && situation.kind !== "failed" && html`<p class="detail"><span class="meta">${taskSay.lastError}</span> <code class="bad-text"><${Said}>${`${situation.last_error.type}: ${situation.last_error.message}`}<//></code></p>`}
    ${situation.you > 0 ? html`<${Questions} task=${task} onDone=${onDone} />` : html`<${Ways} task=${task} ways=${situation.ways ?? []} record=${record} onDone=${onDone} />`}</section>`;
}

/** The open questions of the task, to be decided here. @param {{task: import("./tabs.js").TaskRef, onDone: () => void}} props */
function Questions({ task, onDone }) {
  const { value, reload } = useRead((signal) => get(`/v1/inbox${query({ task: task.id })}`, signal), [task.uid, reread.value]);
  const [decided, setDecided] = useState(/** @type {any[]} */ ([]));
  const done = (/** @type {any} */ pause) => { setDecided((all) => [...all, pause]); reload(); setTimeout(onDone, 1500); };
  const open = (value?.items ?? []).filter((/** @type {any} */ pause) => !decided.some((each) => each.id === pause.id));
  const all = [...decided, ...open];
  return html`<div class=${`own-questions ${all.length > 1 ? "several" : ""}`}>${all.map((pause) => html`<${ShortQuestion} key=${pause.id} pause=${pause} withTask=${false} isBare=${all.length === 1} onDone=${done} />`)}</div>`;
}

/** What a person can do about it: buttons for what this session may, commands for the rest.
 * @param {{task: import("./tabs.js").TaskRef, ways: any[], record: any, onDone: () => void}} props */
function Ways({ task, ways, record, onDone }) {
  const buttons = ways.filter((way) => way.href && way.allowed !== false && may(way.scope ?? "tasks:control"));
  const commands = ways.filter((way) => !buttons.includes(way) && way.cli);
  if (!buttons.length && !commands.length) return null;
  return html`<div class="ways"><div class="acts">${buttons.map((way) => html`<${WayButton} key=${way.verb + (way.about ?? "")} way=${way} task=${task} record=${record} onDone=${onDone} />`)}</div>
    ${commands.slice(0, 3).map((way) => html`<p key=${way.cli} class="detail"><span>${way.label}</span> <${Code} copy=${way.cli}>${way.cli}<//></p>`)}</div>`;
}

/** @param {{way: any, task: import("./tabs.js").TaskRef, record: any, onDone: () => void}} props */
function WayButton({ way, task, record, onDone }) {
  const once = useMemo(newOnce, [way.verb, way.href]);
  if (way.method === "GET") return html`<a class="btn small" href=${way.href.replace(/^\/v1/, "")}>${way.label}</a>`;
  if (way.danger || ["fork", "rollback", "cancel", "resume", "approve", "reject", "answer", "settle"].includes(way.verb)) {
    const open = () => import("./verbs.js").then((verbs) => verbs.openVerb(way.verb, { task, record, way, onDone }));
    return html`<${Button} small danger=${way.danger} onClick=${open}>${way.label}<//>`;
  }
  return html`<${Act} small do=${async () => { await send(way.method, way.href, way.body ?? {}, { once }); onDone(); }}>${way.label}<//>`;
}
