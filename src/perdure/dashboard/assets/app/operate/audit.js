// @ts-check
// Whether recorded events are as they were written; and the heads of their chains, to be kept elsewhere.

import { useState } from "preact/hooks";
import { get, send } from "../api.js";
import { saveFile } from "../download.js";
import { Act, Button, html, Said } from "../parts.js";
import { operateSay } from "../say/operate.js";
import { JobState, PartPanel, Row, useJob } from "./rows.js";

const say = operateSay.audit;

export default function Audit() {
  const { job, problem, run, isRunning } = useJob();
  const [bad, setBad] = useState("");
  const verify = (/** @type {any} */ body) => run(send("POST", "/v1/audit/verify", body));
  const compare = async (/** @type {any} */ event) => {
    const file = event.currentTarget.files?.[0];
    event.currentTarget.value = "";
    if (!file) return;
    try { setBad(""); await verify({ heads: JSON.parse(await file.text()) }); } catch { setBad(say.notHeads); }
  };
  const found = job?.state === "done" ? job.result : null;
  const acts = html`<${Act} small do=${saveHeads}>${say.heads}<//><${Button} small busy=${isRunning} disabled=${isRunning} onClick=${() => verify({})}>${say.verify}<//>`;
  return html`<${PartPanel} name="audit" told=${{ value: true, problem: null }} acts=${acts}>
    <div class="body op-audit"><p>${say.what}</p><${JobState} job=${job} problem=${problem} />${bad && html`<p class="misfit" role="alert">${bad}</p>`}
      ${found && html`<ul class="op-rows"><${Row} chip=${found.is_whole ? ["completed", say.whole] : ["stuck", say.broken]} name=${say.counted(found)} sentence=${say.compared(found.heads_compared)} />
        ${found.broken.map((/** @type {any} */ one) => html`<${Row} key=${one.uid} chip=${["stuck", say.broken]} name=${html`<a class="link" href=${`/tasks/~${one.uid}/audit`}><${Said}>${one.task_id}<//></a>`} sentence=${html`<${Said}>${say.brokenAt(one)}<//>`} />`)}</ul>${found.unseen.length > 0 && html`<p class="detail"><${Said} most=${400}>${say.unseen(found.unseen)}<//></p>`}`}
      <div class="field op-file"><label for="audit-heads">${say.compare}</label><input id="audit-heads" class="input" type="file" accept="application/json,.json" onChange=${compare} /><span class="hint">${say.compareHint}</span></div></div><//>`;
}

async function saveHeads() {
  const heads = await get("/v1/audit/heads");
  saveFile("perdure-heads.json", "application/json", [JSON.stringify(heads, null, 2)]);
}
