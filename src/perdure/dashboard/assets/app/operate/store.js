// @ts-check
// The store at a glance, and gc: what it would remove first, then removing exactly by that policy.

import { useState } from "preact/hooks";
import { send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { size } from "../format.js";
import { Button, html, Said } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { may } from "../store.js";
import { JobState, PartPanel, useJob, useTold } from "./rows.js";

const say = operateSay.store;
const DAY = 24 * 3600;

export default function Store() {
  const told = useTold("/v1/store");
  const it = told.value;
  const acts = may("store:admin") && html`<${Button} small onClick=${() => openDialog(Gc, { onDone: told.reload })}>${say.gc}<//>`;
  const facts = /** @type {[string, any][]} */ (it ? [[say.engine, it.engine], [say.place, it.place], [say.namespace, it.namespace], [say.bytes, size(it.bytes)], [say.wal, it.wal_bytes != null && size(it.wal_bytes)], [say.free, it.free_bytes != null && size(it.free_bytes)],
    [say.schema, say.migrations(it.migrations, it.last_migration)], [say.sealing, it.sealing_key ?? say.notSealed], [say.keysInUse, it.keys.map(say.keyName).join(", ")], [say.oldReaders, it.old_readers.length > 0 && it.old_readers.map(say.reader).join(", ")]] : []);
  return html`<${PartPanel} name="store" told=${told} acts=${acts}><dl class="pairs op-pairs">${facts.filter(([, value]) => value).map(([word, value]) => html`<dt key=${word}>${word}</dt><dd><${Said} most=${400}>${value}<//></dd>`)}</dl><//>`;
}

/** @param {{onDone: () => void}} props */
function Gc({ onDone }) {
  const [given, setGiven] = useState({ keep_last: "", keep_for: "", finished_for: "30" });
  const look = useJob(), removal = useJob();
  const [isFresh, setFresh] = useState(false);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => { setGiven({ ...given, [name]: event.currentTarget.value }); setFresh(false); };
  const policy = { keep_last: whole(given.keep_last), keep_for: days(given.keep_for), finished_for: days(given.finished_for) };
  const rehearse = () => { setFresh(true); return look.run(send("POST", "/v1/store/gc", { policy, dry_run: true })); };
  const remove = () => removal.run(send("POST", "/v1/store/gc", { policy, dry_run: false }));
  const plan = isFresh && look.job?.state === "done" ? look.job.result : null;
  const done = removal.job?.state === "done" ? removal.job.result : null;
  const close = () => { closeDialog(); onDone(); };
  const footer = removal.job ? html`<${Button} main disabled=${removal.isRunning} onClick=${close}>${dialogSay.close}<//>`
    : html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Button} main=${!plan} busy=${look.isRunning} disabled=${look.isRunning} onClick=${rehearse}>${say.look}<//>${plan && !say.isNothing(plan) && html`<${Button} danger onClick=${remove}>${say.remove(plan)}<//>`}`;
  return html`<${Dialog} title=${say.gcTitle} footer=${footer} isDirty=${() => removal.isRunning}>
    ${!removal.job && html`<div class="op-policy">${Object.entries(say.policy).map(([name, word]) => html`<div class="field" key=${name}><label for=${`gc-${name}`}>${word}</label><input id=${`gc-${name}`} class="input" inputmode="numeric" autocomplete="off" placeholder=${say.all} value=${given[/** @type {"keep_last"} */ (name)]} onInput=${set(name)} /></div>`)}</div><p class="hint">${say.policyHint}</p>
      ${isFresh && html`<${JobState} job=${look.job} problem=${look.problem} />`}${plan && html`<${Plan} plan=${plan} />`}`}
    <${JobState} job=${removal.job} problem=${removal.problem} />${done && html`<p role="status" class="label">${say.removed(done)}</p>`}<//>`;
}

/** @param {{plan: any}} props */
function Plan({ plan }) {
  const lists = [[say.deletedList, plan.deleted.map(say.deletedLine)], [say.prunedList, plan.pruned.map(say.prunedLine)], [say.heldList, plan.held_back.map(say.heldLine)]];
  return html`<div class="op-plan"><p class="label" role="status">${say.isNothing(plan) ? say.nothing : say.would(plan)}</p>${lists.filter(([, lines]) => lines.length).map(([word, lines]) => html`<details key=${word}><summary>${word} (${lines.length})</summary><ul class="plain-list">${lines.slice(0, 100).map((/** @type {string} */ line, /** @type {number} */ i) => html`<li key=${i}><${Said}>${line}<//></li>`)}</ul></details>`)}</div>`;
}

/** @param {string} text */
const whole = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : null);
/** @param {string} text */
const days = (text) => (text.trim() !== "" && Number(text) >= 0 ? Number(text) * DAY : null);
