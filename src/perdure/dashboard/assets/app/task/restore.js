// @ts-check
// How the last restore of a task went, unit by unit, and what a resume would bring back now.

import { useState } from "preact/hooks";
import { get } from "../api.js";
import { Button, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { restoreSay as say } from "../say/units.js";
import { Level, Reasons } from "./unit_card.js";

const LEVELS = ["lost", "rebuilt", "imaged", "kept"]; // what is gone first
/** The surroundings of the process: they come back nearly always, in one line. */
const QUIET = ["environment", "directory", "variables"];

/** @param {{task: import("./tabs.js").TaskRef, report: any}} props */
export function Restore({ task, report }) {
  return html`${report && html`<${Report} report=${report} />`}<${Plan} task=${task} />`;
}

/** @param {any[]} units */
function countLevels(units) {
  const counts = /** @type {Record<string, number>} */ ({});
  for (const level of LEVELS) {
    const n = units.filter((unit) => unit.verdict.level === level && !QUIET.includes(unit.kind)).length;
    if (n) counts[level] = n;
  }
  return counts;
}

/** @param {{report: any}} props */
function Report({ report }) {
  const plan = report.plan, isElsewhere = report.from_host && report.from_host !== report.host;
  return html`<section class="restore" aria-labelledby="restore-head"><header><h3 id="restore-head">${say.report}</h3><span class="meta">${say.levels(countLevels(plan.units))}</span>
      <span class="end"><${Moment} at=${report.at_ms} before=${say.at} /><span><${Said}>${say.on(report.host)}<//></span>${isElsewhere && html`<span><${Said}>${say.from(report.from_host)}<//></span>`}${plan.checkpoint && html`<span>${say.checkpoint(plan.checkpoint)}</span>`}</span></header>
    <${Verdicts} units=${plan.units} /><${After} plan=${plan} warnings=${report.warnings ?? []} credentials=${report.credentials ?? []} /></section>`;
}

/** @param {{task: import("./tabs.js").TaskRef}} props */
function Plan({ task }) {
  const [turn, setTurn] = useState(0);
  const { value, problem } = useRead(async (signal) => (turn ? get(`${task.path}/plan`, signal) : null), [task.uid, turn]);
  const plan = /** @type {any} */ (value);
  return html`<section class="restore" aria-labelledby="plan-head"><header><h3 id="plan-head">${say.plan}</h3><span class="meta">${plan ? say.levels(countLevels(plan.units)) : say.planWhy}</span>
      <span class="end"><${Button} small onClick=${() => setTurn((n) => n + 1)}>${turn ? say.again : say.look}<//></span></header>
    ${problem && html`<${Trouble} problem=${problem} />`}
    ${turn > 0 && !plan && !problem && html`<${Skeleton} rows=${3} />`}
    ${plan && html`${plan.units.length ? html`<${Verdicts} units=${plan.units} />` : html`<p class="after">${say.nothing}</p>`}<${After} plan=${plan} warnings=${plan.notes ?? []} credentials=${[]} />`}</section>`;
}

/** @param {{units: any[]}} props */
function Verdicts({ units }) {
  const isQuiet = (/** @type {any} */ unit) => QUIET.includes(unit.kind) && unit.verdict.level !== "lost";
  const sorted = units.filter((unit) => !isQuiet(unit)).sort((a, b) => LEVELS.indexOf(a.verdict.level) - LEVELS.indexOf(b.verdict.level));
  const quiet = units.filter(isQuiet);
  const row = (/** @type {string} */ level, /** @type {string} */ name, /** @type {any} */ why) => html`<li key=${name}><${Level} level=${level} /><span class="name"><${Said}>${name}<//></span><span class="why">${why}</span></li>`;
  return html`<ul class="verdicts">${sorted.map((unit) => row(unit.verdict.level, unit.name, html`<${Reasons} verdict=${unit.verdict} />`))}
    ${quiet.length > 0 && row(quiet[0].verdict.level, say.surroundings, quiet.map((unit) => html`<span key=${unit.name}><b>${unit.name}:</b> <${Said} lines>${unit.verdict.reason}<//></span>`))}</ul>`;
}

/** What else a person should know. @param {{plan: any, warnings: string[], credentials: string[]}} props */
function After({ plan, warnings, credentials }) {
  const line = (/** @type {string} */ head, /** @type {string} */ text) => html`<p key=${head + text}><b>${head}</b> <${Said} lines>${text}<//></p>`;
  const differing = (plan.findings ?? []).filter((/** @type {any} */ one) => !one.same);
  const lines = [
    ...differing.map((/** @type {any} */ one) => line(say.changed, `${one.name}: ${one.why}${one.policy === "refuse" ? `. ${say.refuses}` : ""}`)),
    ...(plan.missing ?? []).map((/** @type {any} */ [reference, why]) => line(say.missing, `${reference} (${why})`)),
    ...warnings.map((text) => line(say.warning, text)),
    ...credentials.map((text) => line(say.credential, text)),
    plan.damaged?.length > 0 && line(say.damaged, plan.damaged.join(", ")),
    plan.skipped > 0 && html`<p key="skipped">${say.skipped(plan.skipped)}</p>`,
    ...(plan.rerun ?? []).map((/** @type {string} */ name) => line(say.rerun, name)),
    plan.then?.length > 0 && line(`${say.then}:`, plan.then.join("; ")),
  ].filter(Boolean);
  return lines.length ? html`<div class="after">${lines}</div>` : null;
}
