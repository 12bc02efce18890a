// @ts-check
// Webhooks: what is sent where, what became of each message, and sending again.

import { useState } from "preact/hooks";
import { get, newOnce, Problem, query, segment, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Act, Button, Chip, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { operateSay } from "../say/operate.js";
import { may } from "../store.js";
import { Facts, PartPanel, Refused, Row, ShownOnce, useTold } from "./rows.js";

const say = operateSay.webhooks;

/** @param {{thing?: string}} props */
export default function Webhooks({ thing }) {
  const told = useTold("/v1/webhooks");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  const acts = html`<${Button} small onClick=${() => openDialog(NewHook, { onDone: told.reload })}>${say.make}<//>`;
  return html`<${PartPanel} name="webhooks" told=${told} acts=${acts} isEmpty=${!all.length} empty=${html`<p>${say.none}</p>`}>
    <ul class="op-rows">${all.map((one) => html`<${Hook} key=${one.id} one=${one} isOpen=${one.id === thing} turn=${told.at} onDone=${told.reload} />`)}</ul><//>`;
}

/** @param {any} one @returns {[string, string]} */
function chipOf(one) {
  if (!one.enabled) return ["stopped", say.disabled];
  return one.failing_since ? ["stalled", say.failing] : ["completed", say.ok];
}

/** @param {{one: any, isOpen: boolean, turn: number|undefined, onDone: () => void}} props */
function Hook({ one, isOpen, turn, onDone }) {
  const [open, setOpen] = useState(isOpen);
  const path = `/v1/webhooks/${segment(one.id)}`;
  const act = (/** @type {string} */ verb) => async () => { await send("POST", `${path}/${verb}`); setOpen(true); onDone(); };
  const rotate = () => openDialog(RotateHook, { path, onDone });
  const facts = [html`<${Said}>${say.events(one)}<//>`, one.failing_since && html`<${Moment} at=${one.failing_since} before=${say.failingSince} />`, one.next_try_at && html`<${Moment} at=${one.next_try_at} before=${say.nextTry} />`,
    one.disabled_why && html`<${Said}>${one.disabled_why}<//>`, one.rotating_until && html`<${Moment} at=${one.rotating_until} before=${say.bothUntil} />`];
  return html`<${Row} chip=${chipOf(one)} name=${html`<${Said}>${one.description || one.url}<//>${one.description && html` <span class="op-kind"><${Said}>${one.url}<//></span>`}`} sentence=${html`<${Facts} facts=${facts} />`}
    acts=${html`${!one.enabled && html`<${Act} small do=${act("enable")}>${say.enable}<//>`}<${Act} small do=${act("test")}>${say.test}<//><${Button} small onClick=${rotate}>${say.rotate}<//><${Button} small danger onClick=${() => openDialog(RemoveHook, { one, path, onDone })}>${say.remove}<//>`}>
    <details open=${open} onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}><summary>${say.deliveries}</summary>${open && html`<${Deliveries} path=${path} turn=${turn} />`}</details><//>`;
}

const STATES = /** @type {Record<string, [string, string]>} */ ({ delivered: ["completed", say.delivered], due: ["waiting", say.due], failed: ["failed", say.failed] });

/** @param {{path: string, turn: number|undefined}} props */
function Deliveries({ path, turn }) {
  const [state, setState] = useState("");
  const { value, problem, reload } = useRead((signal) => get(`${path}/deliveries${query({ state, limit: 50 })}`, signal), [path, turn, state]);
  const all = /** @type {any[]} */ (value?.items ?? []);
  return html`<div class="seg" role="group" aria-label=${say.whichDeliveries}>${["", "due", "failed", "delivered"].map((name) => html`<button type="button" key=${name} aria-pressed=${state === name} onClick=${() => setState(name)}>${name ? STATES[name][1] : say.all}</button>`)}</div>
    ${problem && html`<${Refused} problem=${problem} />`}${!value && !problem && html`<${Skeleton} rows=${2} />`}${value && !all.length && html`<p class="meta">${say.noDeliveries}</p>`}
    <ul class="deliveries">${all.map((one) => html`<${Message} key=${one.id} one=${one} path=${path} onDone=${reload} />`)}</ul>`;
}

/** @param {{one: any, path: string, onDone: () => void}} props */
function Message({ one, path, onDone }) {
  const replay = async () => { await send("POST", `${path}/deliveries/${segment(one.id)}/replay`); onDone(); };
  const facts = [say.tries(one.tries), one.status && say.status(one.status), one.took_ms != null && say.took(one.took_ms), one.sent_at ? html`<${Moment} at=${one.sent_at} />` : html`<${Moment} at=${one.made_at} before=${say.queued} />`, one.state === "due" && one.due_at && html`<${Moment} at=${one.due_at} before=${say.nextTry} />`, one.trouble && html`<${Said}>${one.trouble}<//>`];
  return html`<li><${Chip} kind=${STATES[one.state]?.[0] ?? "idle"} word=${STATES[one.state]?.[1] ?? one.state} /><div class="op-what"><strong><${Said}>${one.event}<//></strong> <span class="detail"><${Facts} facts=${facts} /></span>
    ${(one.answer || one.body) && html`<details><summary>${say.content}</summary>${one.answer && html`<h3>${say.answer}</h3><pre class="block"><${Said} lines>${one.answer}<//></pre>`}${one.body && html`<h3>${say.body}</h3><pre class="block"><${Said} lines>${one.body}<//></pre>`}</details>`}</div>
    ${one.state !== "due" && html`<${Act} small do=${replay}>${say.replay}<//>`}</li>`;
}

/** @param {{onDone: () => void}} props */
function NewHook({ onDone }) {
  const [draft, setDraft] = useState({ url: "", description: "", events: "*", data: false });
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [once] = useState(newOnce);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setDraft({ ...draft, [name]: event.currentTarget.value });
  const make = async () => {
    const events = draft.events.split(/[\s,]+/).filter(Boolean);
    const made = await send("POST", "/v1/webhooks", { url: draft.url.trim(), description: draft.description.trim(), events: events.length ? events : ["*"], data: draft.data }, { once });
    openDialog(ShownOnce, { title: say.madeTitle, why: say.madeWhy, secret: made.secret, what: say.secret, onDone });
  };
  return html`<${Dialog} title=${say.makeTitle} isDirty=${() => draft.url !== ""} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main disabled=${!draft.url.trim()} do=${make} onProblem=${setProblem}>${say.makeButton}<//>`}>
    ${problem && html`<${Trouble} problem=${problem} />`}
    <div class="field"><label for="hook-url">${say.url}</label><input id="hook-url" class="input" type="url" autocomplete="off" placeholder="https://" value=${draft.url} onInput=${set("url")} /><span class="hint">${say.urlHint}</span></div>
    <div class="field"><label for="hook-what">${say.description}</label><input id="hook-what" class="input" maxlength="500" value=${draft.description} onInput=${set("description")} /></div>
    <div class="field"><label for="hook-events">${say.eventsField}</label><input id="hook-events" class="input mono" autocomplete="off" value=${draft.events} onInput=${set("events")} /><span class="hint">${say.eventsHint}</span></div>
    ${may("data:read") && html`<label class="check"><input type="checkbox" checked=${draft.data} onChange=${(/** @type {any} */ e) => setDraft({ ...draft, data: e.currentTarget.checked })} />${say.withData}</label>`}<//>`;
}

/** @param {{path: string, onDone: () => void}} props */
function RotateHook({ path, onDone }) {
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [once] = useState(newOnce);
  const act = async () => { const made = await send("POST", `${path}/rotate`, {}, { once }); openDialog(ShownOnce, { title: say.rotatedTitle, why: say.rotatedWhy, secret: made.secret, what: say.secret, onDone }); };
  return html`<${Dialog} title=${say.rotateTitle} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main do=${act} onProblem=${setProblem}>${say.rotateButton}<//>`}>${problem && html`<${Trouble} problem=${problem} />`}<p>${say.rotateWould}</p><//>`;
}

/** @param {{one: any, path: string, onDone: () => void}} props */
function RemoveHook({ one, path, onDone }) {
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const act = async () => { await send("DELETE", path, undefined, { match: `"v${one.version}"` }); closeDialog(); onDone(); };
  return html`<${Dialog} title=${say.removeTitle} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger do=${act} onProblem=${setProblem}>${say.removeButton}<//>`}>${problem && html`<${Trouble} problem=${problem} />`}<p><${Said}>${one.url}<//></p><p>${say.removeWould}</p><//>`;
}
