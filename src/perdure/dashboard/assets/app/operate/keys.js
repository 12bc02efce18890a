// @ts-check
// API keys: made and shown once, renewed with an overlap, revoked for good.

import { useState } from "preact/hooks";
import { newOnce, Problem, segment, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Act, Button, html, Moment, Said, Trouble } from "../parts.js";
import { time } from "../format.js";
import { dialogSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { clock, session } from "../store.js";
import { Facts, PartPanel, Row, ShownOnce, useTold } from "./rows.js";

const say = operateSay.keys;
const HOUR = 3600;

export default function Keys() {
  const told = useTold("/v1/api-keys");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  const acts = html`<${Button} small onClick=${() => openDialog(NewKey, { onDone: told.reload })}>${say.make}<//>`;
  return html`<${PartPanel} name="keys" told=${told} acts=${acts} count=${told.value && say.count(all.filter(isGood).length)} isEmpty=${!all.length} empty=${html`<p>${say.none}</p>`}>
    <ul class="op-rows">${[...all].sort((a, b) => Number(isGood(b)) - Number(isGood(a))).map((one) => html`<${Key} key=${one.id} one=${one} onDone=${told.reload} />`)}</ul><//>`;
}

/** @param {any} one */
const isOver = (one) => Boolean(one.until) && time(one.until) <= clock.value;
/** @param {any} one */
const isGood = (one) => !one.revoked_at && !isOver(one);

/** @param {{one: any, onDone: () => void}} props */
function Key({ one, onDone }) {
  const chip = /** @type {[string, string]} */ (one.revoked_at ? ["cancelled", say.revoked] : isOver(one) ? ["idle", say.expired] : ["completed", say.good]);
  const facts = [html`<code><${Said}>${`prd_${one.id}_…`}<//></code>`, html`<${Said} most=${300}>${one.scopes.join(", ")}<//>`, one.used_at ? html`<${Moment} at=${one.used_at} before=${say.used} />` : say.neverUsed, html`<${Moment} at=${one.made_at} before=${say.made} />`,
    one.revoked_at ? html`<${Moment} at=${one.revoked_at} before=${say.revokedAt} />` : one.until && html`<${Moment} at=${one.until} before=${isOver(one) ? say.overSince : say.until} />`];
  const acts = isGood(one) && html`<${Button} small onClick=${() => openDialog(RotateKey, { one, onDone })}>${say.rotate}<//><${Button} small danger onClick=${() => openDialog(Revoke, { one, onDone })}>${say.revoke}<//>`;
  return html`<${Row} chip=${chip} acts=${acts} name=${html`<${Said}>${one.name}<//>`} sentence=${html`<${Facts} facts=${facts} />`} />`;
}

/** @param {{onDone: () => void}} props */
function NewKey({ onDone }) {
  const [name, setName] = useState("");
  const [preset, setPreset] = useState("viewer");
  const [scopes, setScopes] = useState(/** @type {string[]} */ ([]));
  const [days, setDays] = useState("");
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [once] = useState(newOnce);
  const mine = session.value?.scopes ?? [];
  const chosen = preset === "own" ? scopes : [preset];
  const until = Number(days) > 0 ? new Date(clock.peek() + Number(days) * 24 * HOUR * 1000).toISOString() : null;
  const make = async () => {
    const made = await send("POST", "/v1/api-keys", { name: name.trim(), scopes: chosen, until }, { once });
    openDialog(ShownOnce, { title: say.madeTitle(made.name), why: say.madeWhy, secret: made.key, what: say.key, onDone });
  };
  const tick = (/** @type {string} */ scope) => () => setScopes(scopes.includes(scope) ? scopes.filter((each) => each !== scope) : [...scopes, scope]);
  return html`<${Dialog} title=${say.makeTitle} isDirty=${() => name !== ""} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main disabled=${!name.trim() || !chosen.length} do=${make} onProblem=${setProblem}>${say.makeButton}<//>`}>
    ${problem && html`<${Trouble} problem=${problem} />`}
    <div class="field"><label for="key-name">${say.name}</label><input id="key-name" class="input" autocomplete="off" maxlength="100" value=${name} onInput=${(/** @type {any} */ e) => setName(e.currentTarget.value)} /><span class="hint">${say.nameHint}</span></div>
    <fieldset class="field"><legend class="label">${say.scopes}</legend>${Object.entries(say.presets).map(([word, what]) => html`<label class="check" key=${word}><input type="radio" name="preset" value=${word} checked=${preset === word} onChange=${() => setPreset(word)} /><span>${what}</span></label>`)}
      ${preset === "own" && html`<div class="op-scopes">${mine.map((scope) => html`<label class="check" key=${scope}><input type="checkbox" checked=${scopes.includes(scope)} onChange=${tick(scope)} /><code>${scope}</code></label>`)}</div>`}</fieldset>
    <div class="field"><label for="key-days">${say.days}</label><input id="key-days" class="input" inputmode="numeric" autocomplete="off" value=${days} onInput=${(/** @type {any} */ e) => setDays(e.currentTarget.value)} /><span class="hint">${say.daysHint}</span></div><//>`;
}

/** @param {{one: any, onDone: () => void}} props */
function RotateKey({ one, onDone }) {
  const [hours, setHours] = useState("24");
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const act = async () => {
    const made = await send("POST", `/v1/api-keys/${segment(one.id)}/rotate`, { overlap: Math.max(0, Number(hours) || 0) * HOUR });
    openDialog(ShownOnce, { title: say.rotatedTitle(made.name), why: say.rotatedWhy(hours), secret: made.key, what: say.key, onDone });
  };
  return html`<${Dialog} title=${say.rotateTitle(one.name)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main do=${act} onProblem=${setProblem}>${say.rotateButton}<//>`}>
    ${problem && html`<${Trouble} problem=${problem} />`}<div class="field"><label for="key-overlap">${say.overlap}</label><input id="key-overlap" class="input" inputmode="numeric" value=${hours} onInput=${(/** @type {any} */ e) => setHours(e.currentTarget.value)} /><span class="hint">${say.overlapHint}</span></div><//>`;
}

/** @param {{one: any, onDone: () => void}} props */
function Revoke({ one, onDone }) {
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const act = async () => { await send("DELETE", `/v1/api-keys/${segment(one.id)}`, undefined, { match: one.etag }); closeDialog(); onDone(); };
  return html`<${Dialog} title=${say.revokeTitle(one.name)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger do=${act} onProblem=${setProblem}>${say.revokeButton}<//>`}>${problem && html`<${Trouble} problem=${problem} />`}<p>${say.revokeWould}</p><//>`;
}
