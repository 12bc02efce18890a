// @ts-check
// One verb for many tasks, those of a filter or those that were ticked: the server rehearses first, and the confirmation
// names exactly the tasks it has seen.

import { useEffect, useState } from "preact/hooks";
import { get, newOnce, Problem, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Act, Button, html, Said, Skeleton, Trouble } from "../parts.js";
import { bulkSay } from "../say/bulk.js";
import { dialogSay } from "../say/common.js";
import { announcement } from "../store.js";
import { hrefOf } from "../tasks_parts.js";

const ASK_NUMBER = 20;

/** @param {string} verb @param {{filter?: Record<string, string[]>, uids?: string[]}} which @param {() => void} onDone */
export const openBulk = (verb, which, onDone) => openDialog(Bulk, { verb, which, onDone });

/** @typedef {{count: number, items: any[], refused: {id: string, uid: string, why: string}[], refused_count: number, effects_undone: Record<string, number>, effects_uncertain: number, is_partial: boolean, confirm: string}} Plan */

/** @param {{verb: string, which: {filter?: Record<string, string[]>, uids?: string[]}, onDone: () => void}} props */
function Bulk({ verb, which, onDone }) {
  const [plan, setPlan] = useState(/** @type {Plan|null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [typed, setTyped] = useState("");
  const [message, setMessage] = useState(bulkSay.defaultMessage);
  const [job, setJob] = useState(/** @type {any} */ (null));
  const [looks, setLooks] = useState(0);
  const wanted = which.uids ? { uids: which.uids } : { filter: wireFilter(which.filter ?? {}) };
  const body = { verb, ...wanted, with: verb === "pause" ? { message } : {} };
  useEffect(() => {
    setPlan(null); setProblem(null);
    send("POST", "/v1/bulk", { ...body, dry_run: true }, { once: newOnce() }).then(setPlan, (error) => { if (!(error instanceof Problem)) throw error; setProblem(error); });
  }, [looks, verb === "pause" ? message : ""]);
  useEffect(() => {
    if (!job?.id || job.state !== "running") return;
    const timer = setTimeout(async () => { try { setJob(await get(`/v1/jobs/${job.id}`)); } catch (error) { if (error instanceof Problem) setProblem(error); } }, 400);
    return () => clearTimeout(timer);
  }, [job]);
  useEffect(() => { if (job?.state === "done") { announcement.value = bulkSay.done(job.result.done, job.result.refused_count); onDone(); } }, [job?.state]);
  const act = async () => {
    try {
      setJob(await send("POST", "/v1/bulk", { ...body, dry_run: false, confirm: plan?.confirm }, { once: newOnce() }));
    } catch (error) { if (!(error instanceof Problem)) throw error; setProblem(error); }
  };
  const needsNumber = plan !== null && plan.count > ASK_NUMBER;
  const isReady = plan !== null && plan.count > 0 && (!needsNumber || typed.trim() === String(plan.count));
  const footer = job ? html`<${Button} main onClick=${closeDialog}>${dialogSay.close}<//>`
    : html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//>${plan && plan.count > 0 && html`<${Act} main=${verb !== "cancel" && verb !== "delete"} danger=${verb === "cancel" || verb === "delete"} disabled=${!isReady} do=${act}>${bulkSay.button(verb, plan.count)}<//>`}`;
  return html`<${Dialog} title=${bulkSay.title(verb)} footer=${footer} isDirty=${() => typed !== ""}>
    ${problem && html`<${Trouble} problem=${problem} />${problem.code === "set_changed" && html`<${Button} onClick=${() => setLooks((n) => n + 1)}>${bulkSay.again}<//>`}`}
    ${job ? html`<${Progress} job=${job} />` : plan ? html`<${PlanText} verb=${verb} plan=${plan} />` : !problem && html`<p>${bulkSay.looking}</p><${Skeleton} rows=${3} />`}
    ${!job && verb === "pause" && html`<div class="field"><label for="bulk-message">${bulkSay.message}</label><input id="bulk-message" class="input" value=${message} onChange=${(/** @type {any} */ e) => setMessage(e.currentTarget.value || bulkSay.defaultMessage)} maxlength="500" /></div>`}
    ${!job && needsNumber && html`<div class="field"><label for="bulk-number">${bulkSay.typed(plan.count)}</label><input id="bulk-number" class="input" inputmode="numeric" autocomplete="off" value=${typed} onInput=${(/** @type {any} */ e) => setTyped(e.currentTarget.value)} /></div>`}<//>`;
}

/** @param {{verb: string, plan: Plan}} props */
function PlanText({ verb, plan }) {
  return html`<p class="label">${plan.count ? bulkSay.would(verb, plan.count) : bulkSay.none}</p>
    ${Object.keys(plan.effects_undone).length > 0 && html`<p>${bulkSay.undone(plan.effects_undone)}</p>`}
    ${plan.effects_uncertain > 0 && html`<p>${bulkSay.uncertain(plan.effects_uncertain)}</p>`}${plan.is_partial && html`<p class="meta">${bulkSay.partial}</p>`}
    ${plan.items.length > 0 && html`<details open=${plan.items.length <= 10}><summary>${bulkSay.first(plan.items.length)}</summary><ul class="plain-list">${plan.items.map((task) => html`<li key=${task.uid}><a class="id" href=${hrefOf(task)} target="_blank" rel="noopener"><${Said} most=${100}>${task.id}<//></a></li>`)}</ul></details>`}
    ${plan.refused_count > 0 && html`<details><summary>${bulkSay.refused(plan.refused_count)}</summary><ul class="plain-list">${plan.refused.map((one) => html`<li key=${one.uid}><${Said} most=${100}>${one.id}<//> <span class="meta"><${Said}>${one.why}<//></span></li>`)}</ul></details>`}`;
}

/** @param {{job: any}} props */
function Progress({ job }) {
  if (job.state === "running") return html`<p role="status">${bulkSay.running(job.say || "")}</p>`;
  if (job.state !== "done") return html`<p role="alert">${bulkSay.failed}</p>`;
  return html`<p role="status" class="label">${bulkSay.done(job.result.done, job.result.refused_count)}</p>
    ${job.result.refused_count > 0 && html`<ul class="plain-list">${job.result.refused.map((/** @type {any} */ one) => html`<li key=${one.uid}><${Said} most=${100}>${one.id || one.uid}<//> <span class="meta"><${Said}>${one.why}<//></span></li>`)}</ul>`}`;
}

/** The filter of an address as the API takes it in a body. @param {Record<string, string[]>} filter */
function wireFilter(filter) {
  const found = /** @type {Record<string, any>} */ ({});
  for (const [name, values] of Object.entries(filter)) {
    if (name.startsWith("tag.")) (found.tags ??= {})[name.slice(4)] = values[0];
    else if (["status", "reason", "situation"].includes(name)) found[name] = values;
    else if (name === "version") found[name] = Number(values[0]);
    else if (name === "archived" || name === "hidden") found[name] = values[0] === "true";
    else found[name] = values[0];
  }
  return found;
}
