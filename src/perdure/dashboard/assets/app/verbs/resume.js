// @ts-check
// Resume a task: what comes back and how, what is different now, and a new instruction.

import { useMemo, useState } from "preact/hooks";
import { get, newOnce, send } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { Act, Button, Chip, html, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { verbSay } from "../say/verbs.js";
import { announcement } from "../store.js";

const KINDS = /** @type {Record<string, string>} */ ({ kept: "completed", imaged: "completed", rebuilt: "waiting", lost: "failed" });

/** @param {{task: import("../task/tabs.js").TaskRef, call?: {function: string|null}|null, onDone: () => void}} props */
export default function Resume({ task, call, onDone }) {
  const [anyway, setAnyway] = useState(false);
  const [instruction, setInstruction] = useState("");
  const { value: plan, problem } = useRead((signal) => get(`${task.path}/plan`, signal), [task.path]);
  const once = useMemo(newOnce, [anyway, instruction]);
  const act = async () => {
    await send("POST", `${task.path}/resume`, { anyway, ...(instruction.trim() ? { instruction } : {}) }, { once });
    announcement.value = verbSay.done.resume;
    closeDialog();
    onDone();
  };
  const refusals = plan?.refusals ?? [];
  const canAct = problem !== null || (plan && (!refusals.length || anyway));
  return html`<${Dialog} title=${verbSay.titles.resume(task.id)} isDirty=${() => instruction !== ""} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main disabled=${!canAct} do=${act}>${verbSay.buttons.resume}<//>`}>
    ${problem ? problem.status !== 404 && html`<${Trouble} problem=${problem} />` : plan ? html`<${Plan} plan=${plan} />` : html`<${Skeleton} rows=${3} />`}
    ${call?.function && html`<div class="field"><label for="resume-instruction">${verbSay.instruction} <span class="hint">${verbSay.optional}</span></label><textarea class="input" id="resume-instruction" rows="2" maxlength="10000" value=${instruction} onInput=${(/** @type {any} */ e) => setInstruction(e.currentTarget.value)}></textarea></div>`}
    ${refusals.length > 0 && html`<label class="check"><input type="checkbox" checked=${anyway} onChange=${(/** @type {any} */ e) => setAnyway(e.currentTarget.checked)} />${verbSay.anyway}</label>`}<//>`;
}

/** @param {{plan: any}} props */
function Plan({ plan }) {
  return html`${plan.units.length > 0 && html`<section><h3>${verbSay.comesBack}</h3><ul class="stake-list">${plan.units.map((/** @type {any} */ unit) => html`<li key=${unit.name}><${Chip} kind=${KINDS[unit.level] ?? "idle"} word=${verbSay.levels[unit.level] ?? unit.level} /><code><${Said} most=${80}>${unit.name}<//></code>${unit.verdict?.reason && html`<span class="meta"><${Said} most=${200}>${unit.verdict.reason}<//></span>`}</li>`)}</ul></section>`}
    ${(plan.findings ?? []).length > 0 && html`<section><h3>${verbSay.findings}</h3><ul class="stake-list">${plan.findings.map((/** @type {any} */ each) => html`<li key=${each.name}><span class=${each.refuses ? "bad-ink" : ""}><${Said} most=${240}>${`${each.name}: ${each.why}`}<//></span></li>`)}</ul></section>`}
    ${plan.missing.length > 0 && html`<section><h3>${verbSay.missing}</h3><ul class="stake-list">${plan.missing.map((/** @type {[string, string]} */ [name, why]) => html`<li key=${name}><code>${name}</code><span class="meta"><${Said}>${why}<//></span></li>`)}</ul></section>`}
    <${Lines} title=${verbSay.rerun} of=${plan.rerun} /><${Lines} title=${verbSay.then} of=${plan.then} />
    ${plan.skipped > 0 && html`<p class="meta">${verbSay.skipped(plan.skipped)}</p>`}`;
}

/** @param {{title: string, of: string[]|undefined}} props */
function Lines({ title, of: lines = [] }) {
  return lines.length ? html`<section><h3>${title}</h3><ul class="stake-list">${lines.map((text) => html`<li key=${text}><${Said} most=${240}>${text}<//></li>`)}</ul></section>` : null;
}
