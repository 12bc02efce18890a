// @ts-check
// Everything a person must decide: the list, and the question itself.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, query, segment } from "../api.js";
import { Icon } from "../icons.js";
import { Decision } from "../inbox/decision.js";
import { Expiry, KindChip, QuestionText } from "../inbox/question.js";
import { useKeys } from "../keys.js";
import { Empty, html, Moment, Said, Skeleton, Trouble, useRead, useStill } from "../parts.js";
import { go, setQuery } from "../router.js";
import { inboxSay } from "../say/inbox.js";
import { counts, subject } from "../store.js";
import { follow, reread } from "../stream.js";
import { hrefOf } from "../tasks_parts.js";
import { Value } from "../values/value.js";

/** How long a decided question stays in sight. */
const STAYS = 5000;

/** @typedef {import("../inbox/decision.js").Pause} Pause */

/** @param {{place: import("../router.js").Place}} props */
export default function Inbox({ place }) {
  const chosen = place.parts[0] ?? "";
  const kind = place.query.get("kind") ?? "";
  const [turn, setTurn] = useState(0);
  const [decided, setDecided] = useState(/** @type {Map<string, Pause>} */ (new Map()));
  const { value, problem } = useRead((signal) => get(`/v1/inbox${query({ kind, limit: 200 })}`, signal), [kind, turn, reread.value]);
  useEffect(() => {
    let timer = 0;
    const stop = follow(["inbox", "tasks"], () => { timer ||= setTimeout(() => { timer = 0; setTurn((n) => n + 1); }, 300); });
    return () => { stop(); clearTimeout(timer); };
  }, []);
  const listed = /** @type {Pause[]} */ (value?.items ?? []);
  const ids = new Set(listed.map((pause) => pause.id));
  const items = [...listed.map((pause) => decided.get(pause.id) ?? pause), ...[...decided.values()].filter((pause) => !ids.has(pause.id))];
  const still = useStill(items, (pause) => pause.id);
  const at = still.items.findIndex((pause) => pause.id === chosen);
  const open = (/** @type {number} */ index) => { const next = still.items[Math.max(0, Math.min(still.items.length - 1, index))]; if (next) go(address(next.id), { keepScroll: true }); };
  const address = (/** @type {string} */ id) => `/inbox/${segment(id)}${query({ kind })}`;
  const isWide = useWide();
  useEffect(() => { if (isWide && !chosen && items.length) go(address(items[0].id), { replace: true }); }, [isWide, chosen, items.length]);
  const done = (/** @type {Pause} */ pause) => {
    setDecided((all) => new Map(all).set(pause.id, pause));
    setTurn((n) => n + 1);
    setTimeout(() => {
      setDecided((all) => { const next = new Map(all); next.delete(pause.id); return next; });
      if (location.pathname === `/inbox/${segment(pause.id)}`) { const next = listed.find((each) => each.id !== pause.id); go(next && isWide ? address(next.id) : `/inbox${query({ kind })}`, { replace: true }); }
    }, STAYS);
  };
  useKeys({
    j: () => open(at + 1), k: () => open(at - 1), ArrowDown: () => open(at + 1), ArrowUp: () => open(at - 1), u: () => go("/inbox"),
    y: () => { /** @type {HTMLElement|null} */ (document.querySelector(".question-full .btn.main"))?.focus(); }, n: () => { /** @type {HTMLElement|null} */ (document.querySelectorAll(".question-full .decision .btn")[1])?.focus(); },
  }, [at, still.items.length, kind]);
  const total = listed.length;
  return html`<div class=${`inbox ${chosen ? "has-item" : ""}`}>
    <section class="panel inbox-list" aria-labelledby="inbox-head"><header><h1 id="inbox-head">${inboxSay.title}</h1><div class="more">${value && inboxSay.open(total)}</div></header>
      <div class="toolbar"><div class="seg" role="group" aria-label=${inboxSay.filtersLabel}>${Object.entries(inboxSay.filters).map(([name, word]) => html`<button type="button" key=${name} aria-pressed=${(kind || "all") === name} onClick=${() => setQuery({ kind: name === "all" ? null : name }, { push: true })}>${word}</button>`)}</div></div>
      ${problem && html`<${Trouble} problem=${problem} />`}
      ${!value && !problem && html`<${Skeleton} rows=${6} />`}
      ${value && !items.length && html`<${Nothing} kind=${kind} />`}
      <ul class="questions" aria-label=${inboxSay.listLabel} ...${still.props}>${still.items.map((pause) => html`<li key=${pause.id}><a href=${address(pause.id)} class=${pause.answer ? "is-decided" : ""} aria-current=${pause.id === chosen ? "true" : undefined}>
        <span class="row-top"><${KindChip} kind=${pause.kind} /><span class="end"><${Moment} at=${pause.asked_at} /></span></span>
        <span class="question-line"><${QuestionText} pause=${pause} most=${140} /></span>
        <span class="meta"><${Said} most=${80}>${pause.task}<//>${pause.expires_at && !pause.answer ? html` · <${Expiry} pause=${pause} />` : ""}</span></a></li>`)}</ul></section>
    ${chosen ? html`<${Item} key=${chosen} id=${chosen} known=${decided.get(chosen) ?? listed.find((pause) => pause.id === chosen)} turn=${turn} onDone=${done} />` : isWide && items.length > 0 && html`<section class="panel"><${Empty}><p>${inboxSay.choose}</p><//></section>`}
  </div>`;
}

/** @param {{kind: string}} props */
function Nothing({ kind }) {
  if (kind) return html`<${Empty} icon="filter"><p>${inboxSay.noneOfKind}</p><//>`;
  const waits = counts.value?.situation?.waiting ?? 0;
  return html`<${Empty} title=${inboxSay.none} icon="completed">${waits > 0 && html`<p>${inboxSay.waitByThemselves(waits)}</p>`}<//>`;
}

/** @param {{id: string, known: Pause|undefined, turn: number, onDone: (pause: Pause) => void}} props */
function Item({ id, known, turn, onDone }) {
  const { value, problem } = useRead((signal) => get(`/v1/inbox/${segment(id)}`, signal), [id, turn]);
  const head = useRef(/** @type {HTMLHeadingElement|null} */ (null));
  const pause = /** @type {Pause|undefined} */ (known?.answer ? known : value ?? known);
  useEffect(() => { if (pause?.text) subject.value = pause.text.slice(0, 60); }, [pause?.text]);
  if (!pause) return html`<section class="panel">${problem ? (problem.status === 404 ? html`<${Empty} title=${inboxSay.gone}><p><a class="link" href="/inbox">${inboxSay.back}</a></p><//>` : html`<${Trouble} problem=${problem} />`) : html`<${Skeleton} rows=${5} />`}</section>`;
  const calls = pause.context?.calls ?? [];
  return html`<section class="panel question-full" aria-labelledby="question-head">
    <header><a class="back icon-btn" href="/inbox" aria-label=${inboxSay.back}><${Icon} name="left" /></a><${KindChip} kind=${pause.kind} /><a class="id" href=${hrefOf({ id: pause.task, uid: pause.uid })}><${Said} most=${120}>${pause.task}<//></a><div class="more"><${Expiry} pause=${pause} /></div></header>
    <div class="body"><h2 id="question-head" class="question-title" ref=${head}><${QuestionText} pause=${pause} /></h2>
      <p class="detail"><${Moment} at=${pause.asked_at} before=${inboxSay.askedFull} />${pause.by?.user ? html`<${Said}>${inboxSay.by(pause.by.user)}<//>` : ""}${calls.length > 0 && html`${inboxSay.where}<code><${Said} most=${200}>${placeOf(calls[calls.length - 1])}<//></code>`}.</p>
      <${Decision} key=${pause.id} pause=${pause} onDone=${onDone} />
      <${Context} pause=${pause} /></div></section>`;
}

/** "migrate(cluster='eu-2') at agents.py:90", without the line of code that follows: it is below. @param {string} call */
const placeOf = (call) => call.replace(/( at \S+:\d+): [\s\S]*$/, "$1");

/** What stands behind the question, on demand. @param {{pause: Pause}} props */
function Context({ pause }) {
  const [isOpen, setOpen] = useState(false);
  const details = { ...(pause.details ?? {}) };
  for (const told of ["schema", "expires", "default"]) delete details[told];
  const calls = pause.context?.calls ?? [];
  return html`<details class="context" open=${isOpen} onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}><summary>${inboxSay.context}</summary>
    ${isOpen && html`${calls.length > 0 && html`<pre class="block">${calls.join("\n")}</pre>`}${Object.keys(details).length > 0 && html`<h3>${inboxSay.details}</h3><${Value} value=${details} />`}<${TaskState} uid=${pause.uid} />`}</details>`;
}

/** @param {{uid: string}} props */
function TaskState({ uid }) {
  const { value } = useRead((signal) => get(`/v1/tasks/~${uid}`, signal), [uid]);
  return value?.state == null ? null : html`<h3>${inboxSay.state}</h3><${Value} value=${value.state} />`;
}

/** Whether list and question fit side by side. */
function useWide() {
  const [isWide, setWide] = useState(() => matchMedia("(min-width: 900px)").matches);
  useEffect(() => {
    const query = matchMedia("(min-width: 900px)");
    const look = () => setWide(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return isWide;
}
