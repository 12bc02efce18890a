// @ts-check
// One call whole: where it is, how long it took, its arguments, its result or its error, and its tries.

import { get } from "../api.js";
import { length, money, number, visible } from "../format.js";
import { Icon } from "../icons.js";
import { Button, Chip, Code, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { journalSay } from "../say/task.js";
import { may } from "../store.js";
import { Value } from "../values/value.js";
import { ICON_OF, triesOf } from "./outline.js";

/** @param {{task: import("./tabs.js").TaskRef, outline: import("./outline.js").Outline, index: number, call: any, onClose: () => void}} props */
export function Inspector({ task, outline: o, index: i, call: brief, onClose }) {
  const position = o.position[i];
  const address = `${task.path}/journal/${o.line}/${position}`;
  const canRead = may("data:read") && position > 0;
  const { value, problem } = useRead((signal) => (canRead ? get(`${address}?brief=true`, signal) : Promise.resolve(null)), [address, o.upto]);
  const call = value ?? brief;
  const fork = () => import("./verbs.js").then((verbs) => verbs.openVerb("fork", { task, at: call?.path ?? String(position), place: brief?.call ?? o.names[o.name[i]], onDone: () => {} }));
  return html`<aside class="inspector" aria-label=${o.names[o.name[i]]}>
    <header><code class="call-name"><${Said} most=${120}>${o.names[o.name[i]]}<//></code><${Chip} kind=${ICON_OF[o.state[i]]} word=${journalSay.states[/** @type {"d"} */ (o.state[i])]} />
      <button type="button" class="icon-btn" aria-label=${journalSay.close} onClick=${onClose}><${Icon} name="close" /></button></header>
    <div class="inspector-body">
      <dl class="pairs">
        ${call?.path && html`<dt>${journalSay.path}</dt><dd><${Code} copy=${call.path}>${call.path}<//></dd>`}
        <dt>${journalSay.took}</dt><dd>${journalSay.withTries(length(o.took[i]), triesOf(o, i))}</dd>
        <dt>${journalSay.began}</dt><dd><${Moment} at=${o.begun + o.start[i]} /></dd>
        ${call?.attempt > 0 && html`<dt>${journalSay.attempt}</dt><dd>${call.attempt}</dd>`}
        ${call?.key && html`<dt>${journalSay.key}</dt><dd><${Code} copy=${call.key}>${call.key}<//></dd>`}
        ${call?.settled && html`<dt>${journalSay.settled}</dt><dd>${call.settled}</dd>`}
        ${call?.undone_at && html`<dt>${journalSay.undone}</dt><dd><${Moment} at=${call.undone_at} /></dd>`}
        ${call?.tokens > 0 && html`<dt>${journalSay.tokens}</dt><dd>${number(call.tokens)}</dd>`}
        ${call?.money > 0 && html`<dt>${journalSay.money}</dt><dd>${money(call.money)}</dd>`}
      </dl>
      ${problem && html`<${Trouble} problem=${problem} />`}
      ${!may("data:read") && html`<p class="meta">${journalSay.notAllowed}</p>`}
      ${canRead && !value && !problem && html`<${Skeleton} rows=${3} />`}
      ${value?.arguments && html`<h3>${journalSay.arguments}</h3><${Value} value=${plainArguments(value.arguments)} />`}
      ${value && !value.arguments && value.call.endsWith("(…)") && html`<h3>${journalSay.arguments}</h3><p class="meta">${journalSay.notKept}</p>`}
      ${call?.error && html`<h3>${journalSay.error}</h3><${ErrorText} error=${call.error} />`}
      ${value && !value.error && value.state === "done" && html`<h3>${journalSay.result}</h3><${Value} value=${value.value} />`}
      ${value?.tries?.length > 0 && html`<h3>${journalSay.triesTitle}</h3><ol class="tries">${value.tries.map((/** @type {any} */ one) => html`<li key=${one.number}><b>${one.number}</b><span class="bad-ink"><${Said} most=${300}>${`${one.error.type}: ${one.error.message}`}<//></span></li>`)}</ol>`}
      ${value?.marks?.length > 0 && html`<h3>${journalSay.marks}</h3><ul class="tries">${value.marks.slice(0, 100).map((/** @type {any} */ one) => html`<li key=${one.position}><b>${one.kind}</b><${Said} most=${300}>${one.text}<//></li>`)}</ul>`}
      <div class="acts">${may("tasks:control") && position > 0 && html`<${Button} small onClick=${fork}>${journalSay.fork}<//>`}${canRead && html`<a class="btn small" href=${address} target="_blank" rel="noopener">${journalSay.json}</a>`}</div>
    </div></aside>`;
}

/** {"args": […], "kwargs": {…}} without what is empty. @param {any} told */
function plainArguments(told) {
  const { args = [], kwargs = {} } = told;
  if (!Object.keys(kwargs).length) return args;
  return args.length ? { args, ...kwargs } : kwargs;
}

/** @param {{error: any}} props */
function ErrorText({ error }) {
  return html`<pre class="block value bad-ink" tabindex="0">${visible(error.traceback || `${error.type}: ${error.message}`).slice(0, 20_000)}</pre>`;
}
