// @ts-check
// The keeper, and the live things of all tasks.

import { useState } from "preact/hooks";
import { get, Problem, query, segment, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { size } from "../format.js";
import { Act, Button, html, Said, Trouble, useRead } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { unitsSay } from "../say/units.js";
import { may } from "../store.js";
import { EndUnit, factsOf, Level, unitChip } from "../task/unit_card.js";
import { Facts, PartPanel, Refused, Row, useTold } from "./rows.js";

const say = operateSay.units;

export default function Units() {
  const [isAll, setAll] = useState(false);
  const told = useTold(`/v1/units${query({ alive: isAll ? undefined : "true", limit: 200 })}`);
  const keeper = useRead((signal) => get("/v1/keeper", signal), [told.at]);
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  const acts = html`<div class="seg" role="group" aria-label=${say.which}><button type="button" aria-pressed=${!isAll} onClick=${() => setAll(false)}>${say.alive}</button><button type="button" aria-pressed=${isAll} onClick=${() => setAll(true)}>${say.all}</button></div>`;
  const intro = html`<ul class="op-rows">${keeper.problem ? html`<li class="op-row"><${Refused} problem=${keeper.problem} /></li>` : keeper.value && html`<${Keeper} it=${keeper.value.keeper} onDone=${keeper.reload} />`}</ul>`;
  return html`<${PartPanel} name="units" told=${told} acts=${acts} intro=${intro} isEmpty=${!all.length} empty=${html`<p>${isAll ? say.none : say.noneAlive}</p>`}>
    <ul class="op-rows">${all.map((one) => html`<${UnitRow} key=${one.uid} one=${one} onDone=${told.reload} />`)}</ul><//>`;
}

/** @param {{it: any, onDone: () => void}} props */
function Keeper({ it, onDone }) {
  if (!it) return html`<${Row} chip=${["idle", say.noKeeper]} name=${say.keeper} sentence=${say.noKeeperWhy} />`;
  const restart = async () => { await send("POST", "/v1/keeper/restart"); onDone(); };
  const facts = [say.holds(it.alive), size(it.memory), html`<${Said}>${say.endsWith(it.ends_with)}<//>`, it.unreadable?.length > 0 && say.unreadable(it.unreadable.length)];
  const acts = may("store:admin") && html`<${Act} small do=${restart}>${say.restart}<//><${Button} small danger onClick=${() => openDialog(StopKeeper, { it, onDone })}>${say.stop}<//>`;
  return html`<${Row} chip=${it.is_safe ? ["completed", say.ok] : ["you", say.note]} name=${html`<span class="op-kind">${say.keeper}</span> ${say.keeperName(it)}`} sentence=${html`<${Facts} facts=${facts} />`} acts=${acts} />`;
}

/** @param {{one: any, onDone: () => void}} props */
function UnitRow({ one, onDone }) {
  const href = `/tasks/${segment(one.task)}/units/${segment(one.name)}`;
  const path = `/v1${href}`;
  const acts = one.alive && may("units:type") && html`<${Button} small danger onClick=${() => openDialog(EndUnit, { unit: one, path, onDone })}>${unitsSay.end}<//>`;
  return html`<${Row} chip=${unitChip(one)} name=${html`<a href=${href}><${Said}>${one.name}<//></a> <${Level} level=${one.level} /> <span class="op-kind"><${Said}>${say.of(one.task)}<//></span>`} sentence=${html`<${Facts} facts=${factsOf(one)} />`} acts=${acts} />`;
}

/** @param {{it: any, onDone: () => void}} props */
function StopKeeper({ it, onDone }) {
  const [isSure, setSure] = useState(false);
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const act = async () => { await send("POST", "/v1/keeper/stop", { units: isSure }); closeDialog(); onDone(); };
  return html`<${Dialog} title=${say.stopTitle} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger disabled=${it.alive > 0 && !isSure} do=${act} onProblem=${setProblem}>${say.stopButton}<//>`}>
    ${problem && html`<${Trouble} problem=${problem} />`}<p>${say.stopWould(it.alive)}</p>${it.alive > 0 && html`<label class="check"><input type="checkbox" checked=${isSure} onChange=${(/** @type {any} */ e) => setSure(e.currentTarget.checked)} />${say.stopUnits}</label>`}<//>`;
}
