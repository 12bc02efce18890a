// @ts-check
// Triggers, and the events that came in with what became of them.

import { get, segment, send } from "../api.js";
import { Act, html, Moment, Said, Skeleton, useRead } from "../parts.js";
import { operateSay } from "../say/operate.js";
import { may } from "../store.js";
import { reread } from "../stream.js";
import { Value } from "../values/value.js";
import { Facts, PartPanel, Refused, Row, useTold } from "./rows.js";

const say = operateSay.triggers;

export default function Triggers() {
  const told = useTold("/v1/triggers");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  return html`<${PartPanel} name="triggers" told=${told} isEmpty=${!all.length} empty=${html`<p>${say.none}</p>`}>
      <ul class="op-rows">${all.map((one) => html`<${Trigger} key=${one.id} one=${one} onDone=${told.reload} />`)}</ul><//>
    ${may("data:read") && html`<${Events} turn=${told.at} />`}`;
}

/** @param {{one: any, onDone: () => void}} props */
function Trigger({ one, onDone }) {
  const turn = async () => { await send("POST", `/v1/triggers/${segment(one.id)}/${one.is_paused ? "resume" : "pause"}`); onDone(); };
  const facts = [html`<${Said}>${say.source(one)}<//>`, html`<${Said}>${say.target(one)}<//>`, one.rate && say.rate(one.rate), one.queue && html`<${Said}>${say.queue(one.queue)}<//>`];
  return html`<${Row} chip=${one.is_paused ? ["stopped", say.paused] : ["completed", say.ok]} name=${html`<${Said}>${one.id}<//>`} sentence=${html`<${Facts} facts=${facts} />`}
    acts=${may("schedules:write") && html`<${Act} small do=${turn}>${one.is_paused ? say.resume : say.pause}<//>`} />`;
}

/** @param {{turn: number|undefined}} props */
function Events({ turn }) {
  const { value, problem } = useRead((signal) => get("/v1/events?limit=100", signal), [turn, reread.value]);
  const all = /** @type {any[]} */ (value?.items ?? []);
  return html`<section class="panel op-panel" aria-labelledby="op-events"><header><h2 id="op-events">${say.events}</h2>${value && html`<span class="meta">${say.newest}</span>`}</header>
    ${problem && html`<div class="body"><${Refused} problem=${problem} /></div>`}${!value && !problem && html`<${Skeleton} rows=${3} />`}${value && !all.length && html`<div class="body"><p>${say.noEvents}</p></div>`}
    <ul class="op-rows">${all.map((one) => html`<${Event} key=${`${one.name} ${one.id}`} one=${one} />`)}</ul></section>`;
}

/** @param {{one: any}} props */
function Event({ one }) {
  const led = Object.entries(one.led_to ?? {}), refused = Object.entries(one.refused ?? {});
  const chip = /** @type {[string, string]} */ (refused.length ? ["stalled", say.refused] : led.length ? ["completed", say.ledTo] : one.is_over ? ["idle", say.nothing] : ["waiting", say.waits]);
  const facts = [html`<${Moment} at=${one.received_at} before=${say.came} />`, html`<${Said}>${one.id}<//>`, ...led.map(([trigger, task]) => html`<${Said}>${say.started(trigger, task)}<//>`), ...refused.map(([trigger, why]) => html`<${Said}>${say.refusedBy(trigger, why)}<//>`)];
  return html`<${Row} chip=${chip} name=${html`<${Said}>${one.name}<//>`} sentence=${html`<${Facts} facts=${facts} />`}><details><summary>${say.data}</summary><${Value} value=${one.data} /></details><//>`;
}
