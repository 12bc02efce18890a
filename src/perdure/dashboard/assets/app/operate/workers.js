// @ts-check
// The processes that use the store: which live, what they hold, what they can run. Draining gives their tasks back.

import { send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Button, Code, html, Said } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { may } from "../store.js";
import { Facts, JobState, PartPanel, Row, useJob, useTold } from "./rows.js";

const say = operateSay.workers;
const CHIPS = /** @type {Record<string, [string, string]>} */ ({ alive: ["working", say.alive], silent: ["stalled", say.silent], dead: ["failed", say.dead] });

export default function Workers() {
  const told = useTold("/v1/workers");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  const working = all.filter((one) => one.is_worker && one.state === "alive");
  const acts = may("store:admin") && working.length > 0 && html`<${Button} small onClick=${() => openDialog(Drain, { workers: working, onDone: told.reload })}>${say.drainAll}<//>`;
  return html`<${PartPanel} name="workers" told=${told} count=${told.value && say.count(working.length)} acts=${acts} isEmpty=${!all.length} empty=${html`<p>${say.none}</p><${Code} copy=${say.command}>${say.command}<//>`}>
    <ul class="op-rows">${all.map((one) => html`<${Worker} key=${one.id} one=${one} onDone=${told.reload} />`)}</ul><//>`;
}

/** @param {{one: any, onDone: () => void}} props */
function Worker({ one, onDone }) {
  const facts = [one.is_worker ? say.holds(one.leases, one.concurrency) : one.leases > 0 && say.holds(one.leases, null), one.is_worker && one.queues.length > 0 && html`<${Said}>${say.queues(one.queues)}<//>`,
    say.beat(one.lease, one.beat_age), one.version && html`<${Said}>${say.version(one.version)}<//>`, one.wish && html`<${Said}>${say.wish(one.wish)}<//>`];
  const acts = one.is_worker && one.state === "alive" && may("store:admin") && html`<${Button} small onClick=${() => openDialog(Drain, { workers: [one], onDone })}>${say.drain}<//>`;
  return html`<${Row} chip=${CHIPS[one.state] ?? ["idle", one.state]} acts=${acts}
    name=${html`<span class="op-kind">${one.is_worker ? say.worker : say.process}</span> <${Said}>${say.name(one)}<//>`} sentence=${html`<${Facts} facts=${facts} />`}>
    ${one.functions.length > 0 && html`<details><summary>${say.functions(one.functions.length)}</summary><ul class="plain-list">${one.functions.map((/** @type {any} */ each, /** @type {number} */ i) => html`<li key=${i}><code><${Said}>${say.functionName(each)}<//></code></li>`)}</ul></details>`}<//>`;
}

/** @param {{workers: any[], onDone: () => void}} props */
function Drain({ workers, onDone }) {
  const { job, problem, run, isRunning } = useJob();
  const held = workers.reduce((sum, one) => sum + one.leases, 0);
  const act = () => run(send("POST", "/v1/workers/drain", { workers: workers.map((one) => one.id) }));
  const close = () => { closeDialog(); onDone(); };
  const footer = job ? html`<${Button} main onClick=${close}>${dialogSay.close}<//>` : html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Button} danger busy=${isRunning} onClick=${act}>${say.drainButton(workers.length)}<//>`;
  return html`<${Dialog} title=${say.drainTitle} footer=${footer} onClose=${onDone}>
    ${!job && html`<p>${say.drainWould(workers.length, held)}</p><ul class="plain-list">${workers.map((one) => html`<li key=${one.id}><${Said}>${say.name(one)}<//></li>`)}</ul>`}
    <${JobState} job=${job} problem=${problem} />${job?.state === "done" && html`<p role="status">${say.drained(job.result.drained.length, job.result.busy.length)}</p>`}<//>`;
}
