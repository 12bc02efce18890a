// @ts-check
// What the parts of Operate are made of: a panel with rows, a row with its chip, its sentence and what can be done,
// jobs of the server, and secrets that are shown once.

import { useCallback, useEffect, useState } from "preact/hooks";
import { get, Problem } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { Button, Chip, Copy, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { partsSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { reread } from "../stream.js";

/** Milliseconds between two looks at what the stream does not tell. */
const LOOK = 5000;

/** Read an address, and again every 5 s while the tab is shown. @param {string} path @param {any[]} [again] */
export function useTold(path, again = []) {
  const [turn, setTurn] = useState(0);
  const read = useRead(async (signal) => ({ told: await get(path, signal), at: Date.now() }), [path, turn, reread.value, ...again]);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setTurn((n) => n + 1), LOOK);
    return () => clearInterval(timer);
  }, []);
  return { value: read.value?.told, at: read.value?.at, problem: read.problem, reload: read.reload };
}

/** A part: its heading, and its rows or why there are none.
 * @param {{name: string, told: {value?: any, at?: number, problem: Problem|null}, count?: string, acts?: any, empty?: any, isEmpty?: boolean, children?: any, intro?: any}} props */
export function PartPanel({ name, told, count, acts, empty, isEmpty, children, intro }) {
  const { value, problem, at } = told;
  return html`<section class="panel op-panel" aria-labelledby=${`op-${name}`}><header><h2 id=${`op-${name}`}>${operateSay.parts[name]}</h2>${count && html`<span class="meta">${count}</span>`}
      <div class="more">${value && at && html`<span class="checked"><${Moment} at=${at} before=${operateSay.checked} /></span>`}${value && acts}</div></header>
    ${intro}${problem && html`<div class="body"><${Refused} problem=${problem} /></div>`}
    ${!value ? !problem && html`<${Skeleton} rows=${5} />` : isEmpty ? html`<${Empty}>${empty}<//>` : children}</section>`;
}

/** Why a part is not shown. @param {{problem: Problem}} props */
export function Refused({ problem }) {
  return problem.isAbsent ? html`<p>${partsSay.absent}</p>` : html`<${Trouble} problem=${problem} />`;
}

/** @param {{chip: [string, string], name: any, sentence?: any, acts?: any, children?: any, id?: string}} props */
export function Row({ chip, name, sentence, acts, children, id }) {
  return html`<li class="op-row" id=${id}><div class="op-what"><div class="row-top"><strong class="id">${name}</strong></div>${sentence && html`<div class="detail">${sentence}</div>`}</div>
    <div class="op-side"><${Chip} kind=${chip[0]} word=${chip[1]} />${acts && html`<div class="acts">${acts}</div>`}</div>
    ${children && html`<div class="op-below">${children}</div>`}</li>`;
}

/** Facts of a sentence, with dots between them; what is nothing is left out. @param {{facts: any[]}} props */
export function Facts({ facts }) {
  const shown = facts.filter((fact) => fact !== null && fact !== undefined && fact !== false && fact !== "");
  return html`<span class="facts">${shown.map((fact, i) => html`<span key=${i}>${fact}</span>`)}</span>`;
}

/** A job of the server: `run` begins one, `job` tells how far it is. */
export function useJob() {
  const [job, setJob] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  useEffect(() => {
    if (job?.state !== "running") return;
    const timer = setTimeout(() => {
      get(`/v1/jobs/${job.id}`).then(setJob, (error) => { if (!(error instanceof Problem)) throw error; setProblem(error); });
    }, 300);
    return () => clearTimeout(timer);
  }, [job]);
  const run = useCallback(async (/** @type {Promise<any>} */ begun) => {
    setProblem(null);
    try { setJob(await begun); } catch (error) { if (!(error instanceof Problem)) throw error; setProblem(error); }
  }, []);
  return { job, problem, run, isRunning: job?.state === "running" };
}

/** How a job stands: running, or why it did not reach its end. @param {{job: any, problem: Problem|null}} props */
export function JobState({ job, problem }) {
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (job?.state === "running") return html`<p class="meta" role="status">${operateSay.job.running} <${Said}>${job.say}<//></p>`;
  if (job && job.state !== "done") return html`<div class="trouble" role="alert"><strong>${operateSay.job.ended[job.state] ?? operateSay.job.ended.failed}</strong><span><${Said} lines>${job.result?.detail ?? job.say}<//></span></div>`;
  return null;
}

/** A secret that is shown this once: the text, a way to copy it, and no way past it by chance.
 * @param {{title: string, why: string, secret: string, what: string, onDone: () => void}} props */
export function ShownOnce({ title, why, secret, what, onDone }) {
  const done = () => { closeDialog(); onDone(); };
  return html`<${Dialog} title=${title} isDirty=${() => true} onClose=${onDone} footer=${html`<${Button} main onClick=${done}>${operateSay.iHaveIt}<//>`}>
    <p>${why}</p><div class="secret"><code>${secret}</code><${Copy} text=${secret} label=${operateSay.copyOf(what)} /></div><//>`;
}
