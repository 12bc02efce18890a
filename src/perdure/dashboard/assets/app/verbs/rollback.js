// @ts-check
// Return a task to a checkpoint: which one, which effects have run since, and whether they are undone or kept.

import { useMemo, useState } from "preact/hooks";
import { get, getTagged, newOnce, send } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { Act, Button, html, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { verbSay } from "../say/verbs.js";
import { announcement } from "../store.js";
import { AtStake, useRehearsal } from "./at_stake.js";

const SHOWN = 200;

/** `at`: the number of a checkpoint. @param {{task: import("../task/tabs.js").TaskRef, at?: string, onDone: () => void}} props */
export default function Rollback({ task, at, onDone }) {
  const [to, setTo] = useState(at ?? "");
  const [effects, setEffects] = useState("undo");
  const [turn, setTurn] = useState(0);
  const read = useRead(async () => {
    const { value, etag } = await getTagged(`${task.path}?brief=true`);
    const newest = value.latest?.seq ?? 0;
    const { items } = await get(`${task.path}/checkpoints?after=${Math.max(0, newest - SHOWN)}&limit=${SHOWN}`);
    return { etag, items: /** @type {any[]} */ (items).filter((each) => each.valid).reverse() };
  }, [task.path, turn]);
  const known = read.value;
  const chosen = to || String(known?.items.find((each) => !each.superseded)?.seq ?? "");
  const path = `${task.path}/rollback`;
  const { plan, problem } = useRehearsal(path, known && chosen ? { to: Number(chosen), effects } : null, known?.etag);
  const once = useMemo(newOnce, [chosen, effects, known?.etag]);
  const ran = plan ? plan.undone.length + plan.kept.length + plan.uncertain.length : 0;
  const act = async () => {
    await send("POST", path, { to: Number(chosen), effects }, { once, match: known?.etag });
    announcement.value = verbSay.done.rollback;
    closeDialog();
    onDone();
  };
  const isStale = problem?.status === 412;
  return html`<${Dialog} title=${verbSay.titles.rollback(task.id)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger disabled=${!plan || problem !== null} do=${act}>${verbSay.buttons.rollback}<//>`}>
    ${read.problem && html`<${Trouble} problem=${read.problem} />`}${!known && !read.problem && html`<${Skeleton} rows=${3} />`}
    ${known && !chosen && html`<p>${verbSay.noCheckpoint}</p>`}
    ${known && chosen && html`<div class="field"><label for="rollback-to">${verbSay.to}</label><select class="input" id="rollback-to" value=${chosen} onChange=${(/** @type {any} */ e) => setTo(e.currentTarget.value)}>${!known.items.some((each) => String(each.seq) === chosen) && html`<option value=${chosen}>${chosen}</option>`}${known.items.map((each) => html`<option key=${each.seq} value=${String(each.seq)}><${Said} most=${80}>${verbSay.checkpoint(each)}<//></option>`)}</select></div>
      ${ran > 0 && html`<fieldset class="field"><legend>${verbSay.since(ran)}</legend><div class="choices">${["undo", "keep"].map((name) => html`<label key=${name} class="check"><input type="radio" name="rollback-effects" checked=${effects === name} onChange=${() => setEffects(name)} />${verbSay[/** @type {"undo"} */ (name)]}</label>`)}</div></fieldset>`}
      <${AtStake} plan=${plan} problem=${problem} />${isStale && html`<p><${Button} onClick=${() => setTurn((n) => n + 1)}>${verbSay.again}<//></p>`}
      <p class="meta">${verbSay.rollbackNote}</p>`}<//>`;
}
