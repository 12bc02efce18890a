// @ts-check
// The live things of a task: what each is, what runs in it, whether it waits for a person, and who types. Read only.

import { get } from "../api.js";
import { Facts, Row } from "../operate/rows.js";
import { Code, Empty, html, Moment, Said, Skeleton, Trouble, useRead, wear } from "../parts.js";
import { operateSay } from "../say/operate.js";

wear("operate");
const say = operateSay.units;

/** @param {{task: import("./tabs.js").TaskRef, turn: number}} props */
export default function Units({ task, turn }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/units?limit=200`, signal), [task.uid, turn]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${3} />`;
  if (!value.items.length) return html`<${Empty}><p>${say.none}</p><//>`;
  return html`<ul class="op-rows">${value.items.map((/** @type {any} */ unit) => html`<${Unit} key=${unit.uid} unit=${unit} />`)}</ul>`;
}

/** @param {any} unit */
export function unitChip(unit) {
  if (!unit.alive) return ["idle", say.ended(unit.status)];
  if (unit.waiting) return ["you", unit.waiting === "secret" ? say.secret : say.prompt];
  return ["working", say.lives];
}

/** @param {{unit: any}} props */
function Unit({ unit }) {
  const facts = [html`<${Said}>${unit.kind}<//>`, unit.pid > 0 && say.pid(unit.pid), unit.running && html`<code><${Said}>${unit.running}<//></code>`, unit.cwd && html`<${Said}>${unit.cwd}<//>`,
    unit.writer && html`<${Said}>${say.types(unit.writer)}<//>`, html`<${Moment} at=${unit.made_at} before=${say.made} />`, unit.why && html`<${Said}>${unit.why}<//>`];
  const command = unit.alive && say.attach(unit.task, unit.name);
  return html`<${Row} chip=${unitChip(unit)} name=${html`<${Said}>${unit.name}<//>`} sentence=${html`<${Facts} facts=${facts} />`}>${command && html`<p class="detail">${say.readIt} <${Code} copy=${command}>${command}<//></p>`}<//>`;
}
