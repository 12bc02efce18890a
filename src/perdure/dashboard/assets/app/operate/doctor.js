// @ts-check
// What the last look into the store found, and looking again.

import { useEffect } from "preact/hooks";
import { get, send } from "../api.js";
import { Button, html, Moment, Said, useRead } from "../parts.js";
import { operateSay } from "../say/operate.js";
import { reread } from "../stream.js";
import { JobState, PartPanel, Row, useJob } from "./rows.js";

const say = operateSay.doctor;
const CHIPS = /** @type {Record<string, [string, string]>} */ ({ problem: ["stuck", say.problem], note: ["you", say.note], ok: ["completed", say.ok] });
const ORDER = ["problem", "note", "ok"];

export default function Doctor() {
  const read = useRead(lastLook, [reread.value]);
  const { job, problem, run, isRunning } = useJob();
  useEffect(() => { if (job?.state === "done") read.reload(); }, [job?.state]);
  const found = read.value?.found;
  const items = [.../** @type {any[]} */ (found?.items ?? [])].sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  const look = () => run(send("POST", "/v1/store/doctor"));
  const acts = html`${found && html`<${Moment} at=${found.at} before=${say.looked} />`}<${Button} small busy=${isRunning} disabled=${isRunning} onClick=${look}>${found ? say.again : say.look}<//>`;
  return html`<${PartPanel} name="doctor" told=${{ value: read.value, problem: read.problem }} acts=${acts} count=${found ? say.count(found.problems ?? 0, items.filter((one) => one.level === "note").length) : undefined} isEmpty=${!items.length} empty=${html`<p>${say.never}</p>`}
    intro=${(problem || job) && job?.state !== "done" && html`<div class="body"><${JobState} job=${job} problem=${problem} /></div>`}>
    <ul class="op-rows">${items.map((one, i) => html`<${Row} key=${i} chip=${CHIPS[one.level] ?? CHIPS.note} name=${html`<${Said}>${one.subject}<//>`} sentence=${html`<${Said} lines>${one.what}<//>`}>${one.do && html`<p class="detail">${say.todo} <${Said} lines>${one.do}<//></p>`}<//>`)}</ul><//>`;
}

/** Without a look so far there is nothing to show. @param {AbortSignal} signal */
async function lastLook(signal) {
  const found = await get("/v1/store/doctor", signal);
  return { found: found.at === null ? null : found };
}
