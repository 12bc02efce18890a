// @ts-check
// The head of a task: what it is, in two lines, and what can be done with it.

import { useRef } from "preact/hooks";
import { money, number } from "../format.js";
import { Icon } from "../icons.js";
import { Button, Chip, Copy, html, Moment, Said } from "../parts.js";
import { situationSay, some } from "../say/common.js";
import { taskSay } from "../say/task.js";
import { announcement, may } from "../store.js";
import { hasPast, verbsFor } from "../verbs/allowed.js";

const DEFAULT_QUEUE = "default";

/** @param {{task: import("./tabs.js").TaskRef, record: any, call: Api.TaskCall|null, situation: any, account: any, isGone: boolean, onDone: () => void}} props */
export function Head({ task, record, call, situation, account, isGone, onDone }) {
  const isFunction = call !== null;
  const allowed = may("tasks:control") && !isGone ? verbsFor(record.status, isFunction, hasPast(record)) : [];
  const open = (/** @type {string} */ verb) => import("./verbs.js").then((verbs) => verbs.openVerb(verb, { task, call, onDone }));
  const facts = [
    call && html`<code><${Said} most=${200}>${call.text || call.function}<//></code>`,
    call && taskSay.version(call.version),
    call && call.queue !== DEFAULT_QUEUE && html`<${Said} most=${80}>${taskSay.queue(call.queue)}<//>`,
    record.attempts?.length > 0 && taskSay.attempt(record.attempts.length),
    html`<${Moment} at=${record.started_at ?? record.created_at} before=${taskSay.begun} />`,
    record.finished_at && html`<${Moment} at=${record.finished_at} before=${taskSay.ended} />`,
    record.agent && html`<${Said} most=${80}>${taskSay.agent(record.agent)}<//>`,
    record.name && ![record.id, call?.function].includes(record.name) && html`<${Said} most=${120}>${record.name}<//>`,
    ...cost(account),
    record.archived_at && taskSay.archived,
  ].filter(Boolean);
  return html`<header class="task-head"><div class="task-name"><div class="task-title"><${Chip} kind=${situation.kind} word=${situationSay[situation.kind]} />
      <h1><${Said} lines>${record.id}<//></h1><${Copy} text=${record.id} label=${taskSay.copyId} /></div>
    <p class="facts">${facts.map((fact, i) => html`<span key=${i}>${fact}</span>`)}</p>
    ${Object.keys(record.tags ?? {}).length > 0 && html`<p class="tags">${Object.entries(record.tags).map(([key, value]) => html`<a key=${key} class="tag" href=${`/tasks?${new URLSearchParams({ [`tag.${key}`]: String(value) })}`}><${Said} most=${60}>${`${key}=${value}`}<//></a>`)}</p>`}
    ${record.damaged?.length > 0 && html`<p class="bad-text">${taskSay.damaged(record.damaged.map((/** @type {string} */ name) => taskSay.damagedPart(name.startsWith(`${record.uid}.`) ? name.slice(record.uid.length + 1) : name)).join(", "))}</p>`}</div>
    <div class="acts">${allowed.filter((each) => !each.inMenu).map((each) => html`<${Button} key=${each.verb} class="wide-only" danger=${each.danger} onClick=${() => open(each.verb)}>${taskSay.verbs[/** @type {"pause"} */ (each.verb)]}<//>`)}
      ${!isGone && html`<${Menu} verbs=${allowed} onChoose=${open} id=${record.id} />`}</div></header>`;
}

/** @param {any} account */
function cost(account) {
  const spent = account?.spent ?? {};
  const calls = (account?.by_function ?? []).reduce((/** @type {number} */ all, /** @type {any} */ row) => all + row.calls, 0);
  return [
    calls > 0 && some(calls, "model call"),
    spent.tokens > 0 && `${number(spent.tokens)} tokens`,
    spent.money > 0 && taskSay.money(money(spent.money)),
  ];
}

/** @param {{verbs: import("../verbs/allowed.js").VerbRule[], onChoose: (verb: string) => void, id: string}} props */
function Menu({ verbs, onChoose, id }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const choose = (/** @type {() => void} */ act) => () => { box.current?.hidePopover(); act(); };
  const copy = (/** @type {string} */ text) => () => navigator.clipboard.writeText(text).then(() => { announcement.value = taskSay.copyLink; }, () => {});
  return html`<button type="button" class="btn icon-only" popovertarget="task-menu" aria-label=${taskSay.more} title=${taskSay.more}><${Icon} name="more" /></button>
    <div id="task-menu" popover class="popover menu" ref=${box}>
      ${verbs.map((each) => html`<button type="button" key=${each.verb} class=${`${each.danger ? "bad-text" : ""} ${each.inMenu ? "" : "narrow-only"}`} onClick=${choose(() => onChoose(each.verb))}>${taskSay.verbs[/** @type {"pause"} */ (each.verb)]}</button>`)}
      <button type="button" onClick=${choose(copy(location.href))}>${taskSay.copyLink}</button>
      <button type="button" onClick=${choose(copy(`perdure show ${shellQuote(id)}`))}>${taskSay.copyCommand}</button></div>`;
}

/** @param {string} text */
const shellQuote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
