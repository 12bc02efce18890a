// @ts-check
// The checkpoints of a task, newest first. One chosen shows what it holds, two show what changed between them.
// The address names them: …/checkpoints/5, …/checkpoints/3..5.

import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api.js";
import { size } from "../format.js";
import { Icon } from "../icons.js";
import { enter, useKeys } from "../keys.js";
import { Act, Button, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { go } from "../router.js";
import { checkpointSay as say } from "../say/past.js";
import { may } from "../store.js";
import { Diff } from "./diff.js";
import { Contents } from "./state.js";

const PAGE = 200;

/** @param {{task: import("./tabs.js").TaskRef, record: any, turn: number, thing?: string, onCount: (n: number) => void}} props */
export default function Checkpoints({ task, record, turn, thing, onCount }) {
  const [floor, setFloor] = useState(PAGE);
  const newest = record.latest?.seq ?? 0;
  const after = Math.max(0, newest - floor);
  const { value, problem, reload } = useRead((signal) => readFrom(task.path, after, signal), [task.uid, turn, after]);
  const items = value ? [...value].reverse() : [];
  useEffect(() => { if (value && !after) onCount(value.length); }, [value]);
  const { one, two } = chosenIn(thing);
  const here = task.path.slice("/v1".length);
  const at = (/** @type {string} */ what) => go(`${here}/checkpoints${what && `/${what}`}`, { keepScroll: true });
  const step = (/** @type {number} */ by) => {
    const now = items.findIndex((each) => String(each.seq) === one);
    const next = items[Math.max(0, Math.min(items.length - 1, now + by))];
    if (next) at(String(next.seq));
  };
  const compare = () => {
    if (two) return at(one);
    const before = items.find((each) => each.seq < Number(one || newest));
    if (before) at(`${before.seq}..${one || newest}`);
  };
  useKeys({ j: () => step(1), k: () => step(-1), c: compare, Enter: (event) => enter(event, ".split-head .btn"), Escape: () => (one ? at("") : false) }, [one, two, value, newest]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${6} />`;
  if (!items.length) return html`<${Empty} title=${say.none}><p>${say.noneText}</p><//>`;
  const found = items.find((each) => String(each.seq) === one);
  return html`<div class=${`split ${one ? "is-chosen" : ""}`}><div class="split-list"><table class="ledger" aria-label=${say.listLabel}><thead><tr>${Object.entries(say.columns).map(([name, text]) => html`<th key=${name} scope="col" class=${`col-${name}`}>${text}</th>`)}<td class="col-marks"></td></tr></thead>
      <tbody>${items.map((each) => html`<${Row} key=${each.seq} checkpoint=${each} here=${here} one=${one} two=${two} isNow=${each.seq === newest} task=${task} onDone=${reload} />`)}</tbody></table>
      ${after > 0 && html`<p class="body"><${Button} small onClick=${() => setFloor(floor + PAGE)}>${say.older}<//></p>`}</div>
    <div class="split-side">${!one ? html`<${Empty}><p>${say.choose}</p><//>` : html`<header class="split-head"><h2>${two ? say.pair(one, two) : say.title(Number(one))}</h2>
        ${two ? html`<${Button} small onClick=${() => at(`${two}..${one}`)}>${say.swap}<//>` : html`<${Verbs} task=${task} checkpoint=${found} onDone=${reload} />`}<button type="button" class="icon-btn end" aria-label=${say.close} onClick=${() => at("")}><${Icon} name="close" /></button></header>
      ${!may("data:read") ? html`<${Empty} icon="lock"><p>${say.needsData}</p><//>` : two ? html`<${Diff} key=${thing} task=${task} from=${one} to=${two} />` : html`<${Contents} key=${one} task=${task} seq=${Number(one)} bytes=${found?.size ?? Infinity} />`}`}</div></div>`;
}

/** What can begin at a checkpoint. @param {{task: import("./tabs.js").TaskRef, checkpoint: any, onDone: () => void}} props */
function Verbs({ task, checkpoint, onDone }) {
  if (!checkpoint?.valid || !may("tasks:control")) return null;
  const open = (/** @type {string} */ verb, /** @type {any} */ about) => () => import("./verbs.js").then((verbs) => verbs.openVerb(verb, { task, onDone, ...about }));
  return html`<${Button} small onClick=${open("fork", { at: checkpoint.id, place: say.title(checkpoint.seq) })}>${say.fork}<//><${Button} small onClick=${open("rollback", { at: String(checkpoint.seq) })}>${say.rollback}<//>`;
}

/** Every checkpoint after a number. @param {import("./tabs.js").TaskRef["path"]} path @param {number} after @param {AbortSignal} signal */
async function readFrom(path, after, signal) {
  const items = /** @type {any[]} */ ([]);
  for (let next = /** @type {string|null} */ (String(after)); next !== null && items.length < 5000;) {
    const told = await get(`${path}/checkpoints?after=${encodeURIComponent(next)}&limit=${PAGE}`, signal);
    items.push(...told.items);
    next = told.next;
  }
  return items;
}

/** @param {string|undefined} thing */
function chosenIn(thing) {
  const [, one = "", two = ""] = /^(\d{1,15})(?:\.\.(\d{1,15}|now))?$/.exec(thing ?? "") ?? [];
  return { one, two };
}

/** @param {{checkpoint: any, here: string, one: string, two: string, isNow: boolean, task: import("./tabs.js").TaskRef, onDone: () => void}} props */
function Row({ checkpoint: each, here, one, two, isNow, task, onDone }) {
  const seq = String(each.seq);
  const isChosen = seq === one || seq === two;
  const [low, high] = Number(one) < each.seq ? [one, seq] : [seq, one];
  const pin = async () => { await send(each.pinned ? "DELETE" : "PUT", `${task.path}/checkpoints/${seq}/pin`); onDone(); };
  return html`<tr class=${`${isChosen ? "chosen" : ""} ${each.superseded || !each.valid ? "faint" : ""}`}><td class="col-seq"><a class="link" href=${`${here}/checkpoints/${seq}`} aria-current=${isChosen ? "true" : undefined}>${seq}</a></td>
    <td class="col-when"><${Moment} at=${each.timestamp} /></td><td class="col-cause"><${Said} most=${40}>${each.cause}<//></td><td class="col-label"><${Said} most=${80}>${each.label ?? ""}<//></td><td class="col-size">${size(each.size)}</td><td class="col-stored">${size(each.stored)}</td>
    <td class="col-marks"><div>${isNow && html`<span class="chip ok">${say.now}</span>`}${!each.valid && html`<span class="chip bad">${say.aside}</span>`}${each.superseded && html`<span class="chip off">${say.superseded}</span>`}${each.line > 1 && html`<span class="meta">${say.line(each.line)}</span>`}
      ${each.pinned && html`<span class="chip off"><${Icon} name="pin" size=${12} />${say.pinned}</span>`}
      ${one && !isChosen && html`<a class="link" href=${`${here}/checkpoints/${low}..${high}`} aria-label=${`${seq}: ${say.compareWith(Number(one))}`}>${say.compare}</a>`}
      ${may("tasks:control") && isChosen && html`<${Act} small do=${pin}>${each.pinned ? say.unpin : say.pin}<//>`}</div></td></tr>`;
}
