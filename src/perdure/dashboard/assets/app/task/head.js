// @ts-check
// The head of a task: what it is, in two lines, and what can be done with it.

import { useRef } from "preact/hooks";
import { number } from "../format.js";
import { Icon } from "../icons.js";
import { Button, Chip, Copy, html, Moment, Said } from "../parts.js";
import { situationSay, some } from "../say/common.js";
import { taskSay } from "../say/task.js";
import { announcement, may } from "../store.js";

const FINISHED = ["completed", "failed", "cancelled"];

/** Verbs of the buttons and of the menu, and which statuses allow them. @type {{verb: string, when: (status: string, isFunction: boolean) => boolean, danger?: boolean, inMenu?: boolean}[]} */
const VERBS = [
  { verb: "pause", when: (status) => status === "running" || status === "pending" },
  { verb: "resume", when: (status) => status === "paused" || status === "failed" },
  { verb: "fork", when: () => true },
  { verb: "rollback", when: (status) => status !== "pending" },
  { verb: "cancel", when: (status) => !FINISHED.includes(status), danger: true },
  { verb: "archive", when: (status) => FINISHED.includes(status), inMenu: true },
  { verb: "signal", when: (status, isFunction) => isFunction && !FINISHED.includes(status), inMenu: true },
  { verb: "instruct", when: (status) => !FINISHED.includes(status), inMenu: true },
  { verb: "take", when: (status) => status === "running", inMenu: true },
  { verb: "stop", when: (status) => !FINISHED.includes(status), inMenu: true },
  { verb: "delete", when: (status) => FINISHED.includes(status), inMenu: true, danger: true },
];

/** @param {{task: import("./tabs.js").TaskRef, record: any, summary: any, situation: any, account: any, onDone: () => void}} props */
export function Head({ task, record, summary, situation, account, onDone }) {
  const isFunction = Boolean(summary?.function);
  const allowed = may("tasks:control") ? VERBS.filter((each) => each.when(record.status, isFunction)) : [];
  const open = (/** @type {string} */ verb) => import("./verbs.js").then((verbs) => verbs.openVerb(verb, { task, record, summary, onDone }));
  const facts = [
    summary?.function && html`<code><${Said} most=${200}>${summary.function}<//></code>`,
    summary?.version != null && taskSay.version(summary.version),
    record.attempts?.length > 0 && taskSay.attempt(record.attempts.length),
    html`<${Moment} at=${record.started_at ?? record.created_at} before=${taskSay.begun} />`,
    record.finished_at && html`<${Moment} at=${record.finished_at} before=${taskSay.ended} />`,
    record.agent && html`<${Said} most=${80}>${taskSay.agent(record.agent)}<//>`,
    record.name && record.name !== record.id && html`<${Said} most=${120}>${record.name}<//>`,
    ...cost(account),
    record.archived_at && taskSay.archived,
  ].filter(Boolean);
  return html`<header class="task-head"><div class="task-name"><div class="task-title"><${Chip} kind=${situation.kind} word=${situationSay[situation.kind]} />
      <h1><${Said} lines>${record.id}<//></h1><${Copy} text=${record.id} label=${taskSay.copyId} /></div>
    <p class="facts">${facts.map((fact, i) => html`<span key=${i}>${fact}</span>`)}</p>
    ${Object.keys(record.tags ?? {}).length > 0 && html`<p class="tags">${Object.entries(record.tags).map(([key, value]) => html`<a key=${key} class="tag" href=${`/tasks?${new URLSearchParams({ [`tag.${key}`]: String(value) })}`}><${Said} most=${60}>${`${key}=${value}`}<//></a>`)}</p>`}
    ${record.damaged?.length > 0 && html`<p class="bad-text">${taskSay.damaged(record.damaged.join(", "))}</p>`}</div>
    <div class="acts">${allowed.filter((each) => !each.inMenu).map((each) => html`<${Button} key=${each.verb} danger=${each.danger} onClick=${() => open(each.verb)}>${taskSay.verbs[/** @type {"pause"} */ (each.verb)]}<//>`)}
      <${Menu} verbs=${allowed.filter((each) => each.inMenu)} onChoose=${open} id=${record.id} /></div></header>`;
}

/** @param {any} account */
function cost(account) {
  const spent = account?.spent ?? {};
  const money = Object.entries(typeof spent.money === "object" && spent.money ? spent.money : {});
  return [
    account?.calls?.length > 0 && some(account.calls.length, "model call"),
    spent.tokens > 0 && `${number(spent.tokens)} tokens`,
    ...(money.length ? money.map(([unit, amount]) => `${number(Number(amount))} ${unit}`) : spent.money > 0 ? [number(spent.money)] : []),
  ];
}

/** @param {{verbs: typeof VERBS, onChoose: (verb: string) => void, id: string}} props */
function Menu({ verbs, onChoose, id }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const choose = (/** @type {() => void} */ act) => () => { box.current?.hidePopover(); act(); };
  const copy = (/** @type {string} */ text) => () => navigator.clipboard.writeText(text).then(() => { announcement.value = taskSay.copyLink; }, () => {});
  return html`<button type="button" class="btn icon-only" popovertarget="task-menu" aria-label=${taskSay.more} title=${taskSay.more}><${Icon} name="more" /></button>
    <div id="task-menu" popover class="popover menu" ref=${box}>
      ${verbs.map((each) => html`<button type="button" key=${each.verb} class=${each.danger ? "bad-text" : ""} onClick=${choose(() => onChoose(each.verb))}>${taskSay.verbs[/** @type {"pause"} */ (each.verb)]}</button>`)}
      <button type="button" onClick=${choose(copy(location.href))}>${taskSay.copyLink}</button>
      <button type="button" onClick=${choose(copy(`perdure show ${shellQuote(id)}`))}>${taskSay.copyCommand}</button></div>`;
}

/** @param {string} text */
const shellQuote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
