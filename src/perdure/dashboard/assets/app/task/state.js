// @ts-check
// The newest state of a task, with its plan, its memory and what else its last checkpoint holds.

import { get } from "../api.js";
import { size } from "../format.js";
import { Button, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { place, setQuery } from "../router.js";
import { stateSay } from "../say/past.js";
import { may } from "../store.js";
import { Tree } from "../values/tree.js";

const WHOLE = 100_000; // bytes up to which all of it is read at once

/** @param {{task: import("./tabs.js").TaskRef, record: any}} props */
export default function State({ task, record }) {
  const latest = record.latest;
  if (record.unreadable) return html`<${Empty} icon="lock" title=${stateSay.sealed}><p><${Said} lines>${record.unreadable}<//></p><//>`;
  if (!latest) return html`<${First} key=${task.uid} task=${task} />`;
  return html`<${Contents} key=${task.uid} task=${task} seq=${latest.seq} bytes=${latest.size} head=${html`<a class="link" href=${`/tasks/${task.path.slice("/v1/tasks/".length)}/checkpoints/${latest.seq}`}>${stateSay.checkpoint(latest.seq)}</a><${Moment} at=${latest.timestamp} /><span>${size(latest.size)}</span><${EditInFork} task=${task} />`} />`;
}

/** The state is changed in a fork: the task itself may have a process that works on it.
 * @param {{task: import("./tabs.js").TaskRef}} props */
function EditInFork({ task }) {
  if (!may("tasks:control") || !may("tasks:write")) return null;
  return html`<${Button} small onClick=${() => import("./verbs.js").then((verbs) => verbs.openVerb("fork", { task, editsState: true, onDone: () => {} }))}>${stateSay.edit}<//>`;
}

/** The state that a task began with, as long as it has no checkpoint.
 * @param {{task: import("./tabs.js").TaskRef}} props */
function First({ task }) {
  const { value, problem } = useRead(async (signal) => ({ state: (await get(task.path, signal)).state }), [task.path]);
  if (problem) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${6} />`;
  if (!isThere(value.state)) return html`<${Empty} title=${stateSay.none}><p>${stateSay.noneText}</p><//>`;
  return html`<${Tree} value=${value.state} label=${stateSay.tree(stateSay.parts.state)} />`;
}

/** What one checkpoint holds, part by part. The part and the chosen node are in the address.
 * @param {{task: import("./tabs.js").TaskRef, seq: number, bytes: number, head?: any}} props */
export function Contents({ task, seq, bytes, head }) {
  const address = `${task.path}/checkpoints/${seq}`;
  const { value, problem } = useRead(async (signal) => ({ seq, parts: (await get(`${address}${bytes > WHOLE ? "?brief=true" : ""}`, signal)).value }), [address]);
  if (problem && value?.seq !== seq) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${6} />`;
  const names = Object.keys(stateSay.parts).filter((name) => name === "state" || isThere(value.parts[name]));
  const asked = place.value.query.get("part") ?? "state";
  const part = names.includes(asked) ? asked : "state";
  const source = `${task.path}/checkpoints/${value.seq}?part=${part}&path=`;
  const choose = (/** @type {string} */ name) => () => setQuery({ part: name === "state" ? null : name, at: null });
  const tools = html`${names.length > 1 && html`<div class="seg" role="group" aria-label=${stateSay.partsLabel}>${names.map((name) => html`<button type="button" key=${name} aria-pressed=${name === part} onClick=${choose(name)}>${stateSay.parts[/** @type {"state"} */ (name)]}</button>`)}</div>`}
    <span class="about">${head}</span><a class="btn small" href=${`${task.path}/checkpoints/${value.seq}?part=${part}`} target="_blank" rel="noopener">${stateSay.json}</a>`;
  return html`<${Tree} key=${`${part} ${value.seq}`} value=${value.parts[part] ?? null} label=${stateSay.tree(stateSay.parts[/** @type {"state"} */ (part)])} source=${source} head=${tools}
    at=${pathOf(place.peek().query.get("at"))} onAt=${(/** @type {any[]} */ path) => setQuery({ at: path.length ? JSON.stringify(path) : null })} />`;
}

/** @param {any} value */
const isThere = (value) => value !== null && value !== undefined && (typeof value !== "object" || Object.keys(value).length > 0);

/** A path from the address. @param {string|null} text @returns {(string|number)[]} */
function pathOf(text) {
  try {
    const path = JSON.parse(text ?? "[]");
    return Array.isArray(path) && path.every((part) => typeof part === "string" || typeof part === "number") ? path : [];
  } catch { return []; }
}
