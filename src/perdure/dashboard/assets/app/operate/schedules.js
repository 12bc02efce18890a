// @ts-check
// Schedules: when they come round, in words and as moments, and what they have started.

import { useState } from "preact/hooks";
import { get, newOnce, segment, send } from "../api.js";
import { Act, Chip, Code, html, Moment, Said, Skeleton, useRead } from "../parts.js";
import { exact, time } from "../format.js";
import { rhythm } from "../say/cron.js";
import { operateSay } from "../say/operate.js";
import { announcement, may } from "../store.js";
import { hrefOf } from "../tasks_parts.js";
import { Facts, PartPanel, Refused, Row, useTold } from "./rows.js";

const say = operateSay.schedules;

/** @param {{thing?: string}} props */
export default function Schedules({ thing }) {
  const told = useTold("/v1/schedules");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  return html`<${PartPanel} name="schedules" told=${told} isEmpty=${!all.length} empty=${html`<p>${say.none}</p><${Code} copy=${say.example}>${say.example}<//>`}>
    <ul class="op-rows">${all.map((one) => html`<${Schedule} key=${one.id} one=${one} isOpen=${one.id === thing} onDone=${told.reload} />`)}</ul><//>`;
}

/** @param {{one: any, isOpen: boolean, onDone: () => void}} props */
function Schedule({ one, isOpen, onDone }) {
  const [open, setOpen] = useState(isOpen);
  const [begun, setBegun] = useState(/** @type {any} */ (null));
  const path = `/v1/schedules/${segment(one.id)}`;
  const turn = async () => { await send("POST", `${path}/${one.is_paused ? "resume" : "pause"}`); announcement.value = say.changed(one.id, !one.is_paused); onDone(); };
  const runNow = async () => { setBegun(await send("POST", `${path}/run`, undefined, { once: newOnce() })); onDone(); };
  const facts = [html`<span title=${one.cron}><${Said}>${rhythm(one)}<//></span>`, one.cron && html`<code><${Said}>${one.cron}<//></code>`, !one.is_paused && one.next_at && html`<${Moment} at=${one.next_at} before=${say.next} />`, say.runs(one.runs), one.skipped > 0 && say.skipped(one.skipped), one.open.length > 0 && say.open(one.open.length)];
  const acts = may("schedules:write") && html`<${Act} small do=${runNow}>${say.runNow}<//><${Act} small do=${turn}>${one.is_paused ? say.resume : say.pause}<//>`;
  return html`<${Row} chip=${one.is_paused ? ["stopped", say.paused] : ["waiting", say.scheduled]} acts=${acts}
    name=${html`<${Said}>${one.id}<//> <span class="op-kind"><${Said}>${say.starts(one.function)}<//></span>`} sentence=${html`<${Facts} facts=${facts} />`}>
    ${begun && html`<p role="status">${say.begun} <a class="link" href=${hrefOf(begun)}><${Said}>${begun.id}<//></a></p>`}
    <details open=${open} onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}><summary>${say.more}</summary>${open && html`<${Details} path=${path} one=${one} />`}</details><//>`;
}

/** @param {{path: string, one: any}} props */
function Details({ path, one }) {
  const { value, problem } = useRead((signal) => get(path, signal), [path, one.etag, one.runs]);
  if (!value) return problem ? html`<${Refused} problem=${problem} />` : html`<${Skeleton} rows=${2} />`;
  return html`<div class="op-two"><div><h3>${say.ticks}</h3>${value.next_ticks.length ? html`<ol class="ticks">${value.next_ticks.map((/** @type {string} */ at) => html`<li key=${at}><${Moment} at=${at} /> <span class="meta" title=${exact(time(at))}><${Said}>${say.inZone(at, one.tz)}<//></span></li>`)}</ol>` : html`<p class="meta">${one.is_paused ? say.noTicksPaused : say.noTicks}</p>`}</div>
    <div><h3>${say.lastRuns}</h3>${value.last_runs.length ? html`<ol class="ticks">${value.last_runs.map((/** @type {any} */ run) => html`<li key=${run.uid}><${Chip} kind=${run.status === "running" ? "working" : run.status === "pending" ? "queued" : run.status === "paused" ? "waiting" : run.status} word=${run.status} /> <a class="link" href=${hrefOf(run)}><${Said} most=${60}>${run.id}<//></a> <span class="meta"><${Moment} at=${run.created_at} />${run.finished_at && ` · ${say.took(run)}`}</span></li>`)}</ol>` : html`<p class="meta">${say.noRuns}</p>`}</div></div>`;
}
