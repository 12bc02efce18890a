// @ts-check
// Why a task is, or is not, running: the sentence, what proves it, what is kept, and the ways on.

import { Act, Button, Code, HUES, html, Moment, Said, useRead } from "../parts.js";
import { get, newOnce, query, segment, send } from "../api.js";
import { ShortQuestion } from "../inbox/question.js";
import { reread } from "../stream.js";
import { useMemo, useState } from "preact/hooks";
import { situationSay } from "../say/common.js";
import { taskSay } from "../say/task.js";
import { absoluteTimes, may } from "../store.js";
import { hasPast } from "../verbs/allowed.js";

const QUIET = ["completed", "cancelled"];

/** @param {{task: import("./tabs.js").TaskRef, situation: Api.TaskSituation, record: any, onDone: () => void}} props */
export function SituationPanel({ task, situation, record, onDone }) {
  const headline = situation.headline || situation.say;
  if (!headline && QUIET.includes(situation.kind)) return null;
  const proof = [...(situation.details ?? []), ...(tellsNext(situation) ? [sentence(situation.next)] : [])];
  return html`<section class=${`panel situation edge-${HUES[situation.kind] ?? "off"}`} aria-labelledby="situation-head">
    <div class="situation-top"><h2 id="situation-head"><${Said} lines>${headline || situationSay[situation.kind]}<//></h2>
      <span class="end">${situation.since && html`<${Moment} at=${situation.since} before=${absoluteTimes.value ? taskSay.since : taskSay.lasts} lasts />`}</span></div>
    ${proof.length > 0 && html`<p class="detail"><${Said} lines>${proof.join(" ")}<//></p>`}
    ${situation.last_error && situation.kind !== "failed" && html`<p class="detail"><span class="meta">${taskSay.lastError}</span> <code class="bad-text"><${Said}>${`${situation.last_error.type}: ${situation.last_error.message}`}<//></code></p>`}
    ${situation.you > 0 ? html`<${Questions} task=${task} onDone=${onDone} />` : html`<${Ways} task=${task} ways=${situation.ways ?? []} record=${record} onDone=${onDone} />`}</section>`;
}

/** Whether what comes next is more than the headline and the buttons say. @param {Api.TaskSituation} situation */
const tellsNext = ({ kind, next, say, by_itself }) => Boolean(next) && by_itself && ["waiting", "blocked", "starting", "cancelling"].includes(kind) && !say.includes(next) && !next.includes(say);

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

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
 * @param {{task: import("./tabs.js").TaskRef, ways: Api.WayOn[], record: any, onDone: () => void}} props */
function Ways({ task, ways, record, onDone }) {
  const own = ways.filter((way) => way.verb !== "rollback" || hasPast(record));
  const allowed = own.filter((way) => way.href && way.allowed !== false && may(way.scope ?? "tasks:control"));
  const buttons = allowed.filter((way) => !isInHead(way));
  const commands = own.filter((way) => !allowed.includes(way) && way.cli);
  if (!buttons.length && !commands.length) return null;
  return html`<div class="ways">${buttons.length > 0 && html`<div class="acts">${buttons.map((way) => html`<${WayButton} key=${way.verb + way.href} way=${way} task=${task} record=${record} onDone=${onDone} />`)}</div>`}
    ${commands.slice(0, 3).map((way) => html`<p key=${way.cli} class="detail"><span>${way.label}</span> <${Code} copy=${way.cli}>${way.cli}<//></p>`)}</div>`;
}

/** Whether a button of the head above is the same way. @param {Api.WayOn} way */
const isInHead = (way) => taskSay.verbs[/** @type {"fork"} */ (way.verb)] === way.label;

/** To the terminal, if there is one. @param {{way: Api.WayOn, task: import("./tabs.js").TaskRef}} props */
function TerminalWay({ way, task }) {
  const { value } = useRead((signal) => get(`${task.path}/units?limit=50`, signal), [task.uid]);
  const alive = (value?.items ?? []).filter((unit) => unit.alive);
  if (!alive.length) return null;
  const one = alive.length === 1 ? `/${segment(alive[0].name)}` : "";
  return html`<a class="btn small" href=${`${way.href.replace(/^\/v1/, "")}${one}`}>${way.label}</a>`;
}

/** @param {{way: Api.WayOn, task: import("./tabs.js").TaskRef, record: any, onDone: () => void}} props */
function WayButton({ way, task, record, onDone }) {
  const once = useMemo(newOnce, [way.verb, way.href]);
  if (way.verb === "terminal") return html`<${TerminalWay} way=${way} task=${task} />`;
  if (way.method === "GET") return html`<a class="btn small" href=${way.href.replace(/^\/v1/, "")}>${way.label}</a>`;
  if (way.danger || ["fork", "rollback", "cancel", "resume", "approve", "reject", "answer", "settle"].includes(way.verb)) {
    const open = () => import("./verbs.js").then((verbs) => verbs.openVerb(way.verb, { task, way, onDone }));
    return html`<${Button} small danger=${way.danger} onClick=${open}>${way.label}<//>`;
  }
  return html`<${Act} small do=${async () => { await send(way.method, way.href, way.body ?? {}, { once }); onDone(); }}>${way.label}<//>`;
}
