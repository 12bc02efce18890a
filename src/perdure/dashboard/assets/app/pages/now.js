// @ts-check
// The first page: what needs you, what is stuck, what is going on, what happened while you were away.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { query, refOf } from "../api.js";
import { ShortQuestion } from "../inbox/question.js";
import { loadNow, markSeen, since } from "../now_data.js";
import { Icon } from "../icons.js";
import { Bar, Code, Empty, html, Moment, Panel, Said, Skeleton, Trouble, useRead, useStill } from "../parts.js";
import { firstProgram, nowSay } from "../say/now.js";
import { counts, keep } from "../store.js";
import { follow, reread } from "../stream.js";
import { progressText, Situation, standingOf, TaskLink } from "../tasks_parts.js";

/** @typedef {import("../store.js").Task} Task */

/** When what the server keeps for a second is of after a change. */
const SETTLED = 1500;

export default function Now() {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0, late = 0;
    const read = () => { timer = 0; setTurn((n) => n + 1); };
    // At once for what has changed, and once more: the server counts situations as of a second ago.
    const again = () => { timer ||= setTimeout(read, 400); clearTimeout(late); late = setTimeout(read, SETTLED); };
    const stop = follow(["counts", "inbox", "tasks", "operate"], (event, data) => {
      if (event === "task" && data.task) keep(data.task);
      again();
    });
    return () => { stop(); clearTimeout(timer); clearTimeout(late); };
  }, []);
  const { value: now, problem } = useRead(loadNow, [turn, reread.value, since.value]);
  useEffect(() => { if (now?.counts) counts.value = now.counts; }, [now]);
  if (!now) return html`<h1 class="visually-hidden">${nowSay.title}</h1>${problem ? html`<${Trouble} problem=${problem} />` : html`<div class="panel"><${Skeleton} rows=${6} /></div>`}`;
  if (now.counts.total === 0) return html`<${First} />`;
  const needsYou = now.inbox.length > 0 || decidedHere.value.size > 0;
  const needs = html`<${NeedsYou} now=${now} onDone=${() => setTurn((n) => n + 1)} />`;
  return html`<${Sentence} counts=${now.counts} />
    <div class="now">
      <div class="now-main">${needsYou && needs}${now.stuck.length > 0 && html`<${Stuck} now=${now} />`}
        ${!needsYou && html`<${Working} now=${now} />${needs}`}</div>
      <div class="now-side">${needsYou && html`<${Working} now=${now} />`}<${Next} tasks=${now.next} /><${Recent} now=${now} /><${Health} health=${now.health} /></div>
    </div>`;
}

/** How many there are of what matters; each number leads to its list. @param {{counts: any}} props */
function Sentence({ counts: told }) {
  const kinds = told.situation ?? {};
  const waits = (kinds.waiting ?? 0) + (kinds.blocked ?? 0);
  const parts = [
    { n: kinds.you ?? 0, hue: "you", text: nowSay.need(kinds.you ?? 0), filter: "situation=you" },
    { n: kinds.stuck ?? 0, hue: "bad", text: nowSay.stuck, filter: "situation=stuck" },
    { n: (kinds.working ?? 0) + (kinds.stalled ?? 0), hue: "run", text: nowSay.working, filter: "situation=working&situation=starting&situation=stalled" },
    { n: kinds.starting ?? 0, hue: "run", text: nowSay.starting, filter: "situation=working&situation=starting&situation=stalled" },
    { n: waits, hue: "wait", text: nowSay.wait(waits), filter: "situation=waiting&situation=blocked" },
    { n: kinds.stopped ?? 0, hue: "off", text: nowSay.stopped, filter: "situation=stopped" },
    { n: kinds.idle ?? 0, hue: "off", text: nowSay.idle, filter: "situation=idle" },
  ].filter((part) => part.n > 0);
  return html`<h1 class="sentence"><span class="visually-hidden">${nowSay.title}: </span>${parts.length ? parts.map((part) => html`<a key=${part.text} href=${`/tasks?${part.filter}`}><b class=${`n-${part.hue}`}>${part.n.toLocaleString("en-US")}</b> ${part.text}</a>`) : nowSay.quiet}</h1>`;
}

/** What was decided here stays in sight for 5 s. */
const decidedHere = signal(/** @type {Map<string, any>} */ (new Map()));

/** @param {{now: import("../now_data.js").Now, onDone: () => void}} props */
function NeedsYou({ now, onDone }) {
  const decided = decidedHere.value;
  const still = useStill([...now.inbox, ...[...decided.values()].filter((each) => !now.inbox.some((pause) => pause.id === each.id))], (pause) => pause.id);
  const working = now.counts.situation?.working ?? now.counts.status?.running ?? 0;
  const done = (/** @type {any} */ pause) => { decidedHere.value = new Map(decidedHere.value).set(pause.id, pause); setTimeout(() => { const next = new Map(decidedHere.value); next.delete(pause.id); decidedHere.value = next; }, 5000); onDone(); };
  return html`<${Panel} title=${nowSay.needsYou} id="needs-you" more=${html`<a href="/inbox">${nowSay.inbox}</a>`}>
    ${still.items.length ? html`<ul class="rows" ...${still.props}>${still.items.map((pause) => html`<li key=${pause.id} class="row"><${ShortQuestion} pause=${decided.get(pause.id) ?? pause} onDone=${done} /></li>`)}</ul>`
      : html`<${Empty} icon="completed"><p>${nowSay.nothing(working)}</p><//>`}<//>`;
}

/** Tasks that are stuck, one row for each cause. @param {{now: import("../now_data.js").Now}} props */
function Stuck({ now }) {
  return html`<${Panel} title=${nowSay.stuckTitle} id="stuck" more=${html`<a href="/tasks?situation=stuck">${nowSay.all(now.counts.situation?.stuck ?? now.stuck.length)}</a>`}><ul class="rows">
    ${now.stuck.map((group) => html`<li key=${group.uid} class="row"><div class="row-top"><${TaskLink} task=${group} />${group.count > 1 && html`<a class="meta" href="/tasks?situation=stuck">${nowSay.andMore(group.count - 1)}</a>`}<span class="end"><${Moment} at=${group.situation?.since} /></span></div>
      <p class="why bad-text"><${Icon} name="stuck" size=${14} /><${Said}>${standingOf(group).say}<//></p>
      ${group.ways.filter((way) => way.cli && !way.method).slice(0, 1).map((way) => html`<p key=${way.cli} class="why">${way.label} <${Code} copy=${way.cli}>${way.cli}<//></p>`)}</li>`)}</ul><//>`;
}

/** @param {{now: import("../now_data.js").Now}} props */
function Working({ now }) {
  const still = useStill(now.working, (task) => task.uid);
  const total = now.counts.situation?.working ?? now.counts.status?.running ?? now.working.length;
  return html`<${Panel} title=${nowSay.workingTitle} id="working" more=${total > 0 && html`<a href="/tasks?situation=working">${nowSay.all(total)}</a>`}>
    ${still.items.length ? html`<ul class="rows" ...${still.props}>${still.items.map((task) => html`<${WorkingRow} key=${task.uid} told=${task} />`)}</ul>` : html`<${Empty}><p>${nowSay.nobodyWorks}</p><//>`}<//>`;
}

/** @param {{told: Task}} props */
function WorkingRow({ told }) {
  const task = keep(told).value;
  return html`<li class="row"><div class="row-top"><${TaskLink} task=${task} /><span class="end">${progressText(task.progress)}</span></div>
    <p class="why mono"><${Said}>${standingOf(task).say || task.progress?.operation || task.function || task.agent}<//></p><${Bar} progress=${task.progress} /></li>`;
}

/** @param {{tasks: Task[]}} props */
function Next({ tasks }) {
  if (!tasks.length) return null;
  return html`<${Panel} title=${nowSay.next} id="next"><ul class="rows">${tasks.map((task) => html`<li key=${task.uid} class="row"><div class="row-top"><${TaskLink} task=${task} /><span class="end wait-text"><${Moment} at=${standingOf(task).until ?? task.due_at} /></span></div>
    <p class="why"><${Said}>${standingOf(task).say}<//></p></li>`)}</ul><//>`;
}

/** @param {{now: import("../now_data.js").Now}} props */
function Recent({ now }) {
  const restored = now.restored ?? [];
  return html`<${Panel} title=${since.value ? nowSay.recent : nowSay.lastDay} id="recent" more=${html`${since.value && html`<${Moment} at=${now.since} />`}${now.recent.length + restored.length > 0 && html`<button type="button" class="quiet" onClick=${markSeen}>${nowSay.markSeen}</button>`}`}>
    ${now.recent.length || restored.length ? html`<ul class="rows">${restored.map((task) => html`<${RestoredRow} key=${`back ${task.uid}`} task=${task} />`)}${alike(now.recent).map(({ task, more, href }) => html`<li key=${task.uid} class="row"><div class="row-top"><${Situation} task=${task} /><${TaskLink} task=${task} />${more > 0 && html`<a class="meta" href=${href}>${nowSay.andMore(more)}</a>`}<span class="end"><${Moment} at=${task.finished_at ?? task.updated_at} /></span></div>
    ${more === 0 && standingOf(task).say && html`<p class="why"><${Said}>${standingOf(task).say}<//></p>`}</li>`)}</ul>` : html`<${Empty}><p>${nowSay.nothingNew}</p><//>`}<//>`;
}

/** Tasks that ended alike, one after the other, as one row: a batch would hide everything else.
 * @param {Task[]} tasks @returns {{task: Task, more: number, href: string}[]} */
function alike(tasks) {
  const found = /** @type {{task: Task, more: number, href: string}[]} */ ([]);
  const likeness = (/** @type {Task} */ task) => query({ situation: task.status, function: task.function, agent: task.function ? "" : task.agent });
  for (const task of tasks) {
    const last = found[found.length - 1], href = `/tasks${likeness(task)}`;
    if (last && task.status === "completed" && last.href === href) last.more++;
    else found.push({ task, more: 0, href });
  }
  return found;
}

/** A task that another process took over, with what did not come back as it was. @param {{task: any}} props */
function RestoredRow({ task }) {
  return html`<li class="row"><div class="row-top"><${Situation} task=${task} /><${TaskLink} task=${task} /><span class="end"><${Moment} at=${task.restored_at} /></span></div>
    <p class="why"><a href=${`/tasks/${refOf(task)}/units`}>${nowSay.takenOver(task.levels)}</a></p>
    ${(task.changed ?? []).map((/** @type {any} */ one) => html`<p key=${one.name} class="why">${nowSay.cameBack(one.level)} <${Said}>${`${one.name}: ${one.why}`}<//></p>`)}</li>`;
}

/** @param {{health: any}} props */
function Health({ health }) {
  if (!health) return null;
  return html`<${Panel} title=${nowSay.health} id="health" more=${html`<a href="/operate">${nowSay.operate}</a>`}><div class="row"><p class=${health.state === "ok" ? "health-ok" : "health-bad"}><${Icon} name=${health.state === "ok" ? "completed" : "stalled"} size=${14} /><${Said}>${health.say}<//></p>
    ${health.cli && html`<p><${Code} copy=${health.cli}>${health.cli}<//></p>`}</div><//>`;
}

/** The page before there is any task. */
function First() {
  return html`<div class="first"><h1>${nowSay.firstTitle}</h1><p>${nowSay.first}</p>
    <section class="panel"><header><h2>${nowSay.firstFile}</h2></header><pre class="block" tabindex="0">${firstProgram}</pre></section>
    <p>${nowSay.firstSave} <${Code} copy=${nowSay.firstRun}>${nowSay.firstRun}<//></p>
    <p>${nowSay.firstDemo} <${Code} copy=${nowSay.demo}>${nowSay.demo}<//></p></div>`;
}
