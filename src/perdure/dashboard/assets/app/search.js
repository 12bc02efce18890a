// @ts-check
// One field that finds tasks by id, functions, open questions and pages.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, query, refOf, segment } from "./api.js";
import { closeDialog, Dialog, openDialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { Chip, html, Said, useRead } from "./parts.js";
import { go } from "./router.js";
import { pageSay } from "./say/common.js";
import { searchSay } from "./say/search.js";
import { may } from "./store.js";
import { reread } from "./stream.js";
import { hrefOf, standingOf } from "./tasks_parts.js";
import { verbsFor } from "./verbs/allowed.js";

/** @typedef {{key: string, group: string, href: string, text: string, kind?: string, note?: string, verb?: string, task?: any}} Hit */

/** "cancel checkout-42": a verb, and what to look for. */
const COMMAND = /^(pause|resume|fork|roll ?back|cancel)\s+(\S.*)$/i;

/** `typed`: what was typed before the field had the focus. @param {() => string} [typed] */
export const openSearch = (typed = () => "") => openDialog(Search, { typed });

/** @param {{typed: () => string}} props */
function Search({ typed }) {
  const [text, setText] = useState("");
  const [late, setLate] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => { const timer = setTimeout(() => setLate(text.trim()), 120); return () => clearTimeout(timer); }, [text]);
  const wantsFirst = useRef(false); // Enter was pressed before the answer to what is typed has come
  useEffect(() => { field.current?.focus(); const early = typed(); wantsFirst.current = /\S\n/.test(early); setText(early.trim()); }, []);
  const { value: told } = useRead(async (signal) => ({ text: late, hits: await find(late, signal) }), [late]);
  const hits = told?.hits, all = hits ?? [];
  useEffect(() => { setAt(0); if (wantsFirst.current && told?.text === text.trim() && all[0]) open(all[0]); }, [told]);
  const open = (/** @type {Hit} */ hit) => { closeDialog(); go(hit.href); if (hit.verb) void openVerbOf(hit.verb, hit.task); };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setAt((n) => (n + (event.key === "ArrowDown" ? 1 : -1) + all.length) % Math.max(1, all.length)); }
    else if (event.key === "Enter") { event.preventDefault(); if (told?.text !== text.trim()) wantsFirst.current = true; else if (all[at]) open(all[at]); }
  };
  return html`<${Dialog} title=${searchSay.title} class="search">
    <input ref=${field} class="input" type="text" role="combobox" aria-expanded="true" aria-controls="hits" aria-activedescendant=${all[at] ? `hit-${at}` : undefined} aria-label=${searchSay.title} placeholder=${searchSay.field} value=${text}
      onInput=${(/** @type {any} */ e) => { wantsFirst.current = false; setText(e.currentTarget.value); }} onKeyDown=${press} maxlength="200" autocomplete="off" spellcheck=${false} />
    <ul id="hits" role="listbox" aria-label=${searchSay.title} class="hits">${all.map((hit, i) => html`<li key=${hit.key} id=${`hit-${i}`} role="option" aria-selected=${i === at} onClick=${() => open(hit)} onPointerMove=${() => setAt(i)}>
      ${hit.kind ? html`<${Chip} kind=${hit.kind} />` : html`<${Icon} name=${hit.group === "pages" ? "right" : "search"} size=${14} />`}<span class="hit-text"><${Said} most=${100}>${hit.text}<//></span>${hit.note && html`<span class="meta"><${Said} most=${80}>${hit.note}<//></span>`}</li>`)}</ul>
    ${hits && !all.length && html`<p class="meta">${searchSay.none}</p>`}<p class="meta">${searchSay.hint}</p><//>`;
}

/** A task that is named whole stands before those whose ids begin so. @param {Api.ListedTask[]} tasks @param {string} id */
const exactFirst = (tasks, id) => [...tasks.filter((task) => task.id === id), ...tasks.filter((task) => task.id !== id)];

/** The dialog of a verb, over the page of its task. @param {string} verb @param {Api.ListedTask} task */
async function openVerbOf(verb, task) {
  const ref = refOf(task);
  const verbs = await import("./task/verbs.js");
  verbs.openVerb(verb, { task: { id: task.id, uid: task.uid, ref, path: `/v1/tasks/${ref}` }, call: task, onDone: () => { reread.value++; } });
}

/** @param {string} text @param {AbortSignal} signal @returns {Promise<Hit[]>} */
async function find(text, signal) {
  const low = text.toLowerCase();
  const pages = /** @type {Hit[]} */ ([["now", "/"], ["tasks", "/tasks"], ["inbox", "/inbox"], ["operate", "/operate"]].map(([name, href]) => ({ key: `p${name}`, group: "pages", href, text: pageSay[/** @type {"now"} */ (name)] }))).filter((hit) => !low || hit.text.toLowerCase().includes(low));
  if (!text) return pages;
  if (/^~?[0-9a-v]{24}$/.test(text)) {
    const ref = `~${text.replace("~", "")}`;
    try { const task = await get(`/v1/tasks/${ref}`, signal); return [{ key: ref, group: "tasks", href: `/tasks/${ref}`, text: task.id }]; } catch { /* it is a text like any other */ }
  }
  const none = { items: [], next: null };
  const command = may("tasks:control") ? COMMAND.exec(text) : null;
  if (command) {
    const verb = command[1].toLowerCase().replace(" ", "");
    const { items } = await get(`/v1/tasks${query({ text: command[2].trim(), limit: 8 })}`, signal).catch(() => none);
    return exactFirst(items, command[2].trim()).filter((task) => verbsFor(task.status, Boolean(task.function), true).some((each) => each.verb === verb))
      .map((task) => ({ key: task.uid, group: "verbs", href: hrefOf(task), text: searchSay.command(searchSay.verbs[verb], task.id), kind: standingOf(task).kind, note: task.function ?? "", verb, task }));
  }
  const [tasks, facets, asked] = await Promise.all([
    get(`/v1/tasks${query({ text, limit: 8 })}`, signal).catch(() => none), get("/v1/facets", signal).catch(() => ({ functions: {} })), get("/v1/inbox?limit=100", signal).catch(() => none),
  ]);
  const found = /** @type {Hit[]} */ (exactFirst(tasks.items, text).map((task) => ({ key: task.uid, group: "tasks", href: hrefOf(task), text: task.id, kind: standingOf(task).kind, note: task.function ?? "" })));
  for (const name of Object.keys(facets.functions)) if (name.toLowerCase().includes(low) && found.length < 20) found.push({ key: `f${name}`, group: "functions", href: `/tasks${query({ function: name })}`, text: name, note: searchSay.groups.functions });
  for (const pause of asked.items) if (`${pause.text ?? ""} ${pause.id}`.toLowerCase().includes(low) && found.length < 24) found.push({ key: pause.id, group: "questions", href: `/inbox/${segment(pause.id)}`, text: pause.text ?? pause.task, kind: "you", note: pause.task });
  if (tasks.next) found.push({ key: "all", group: "tasks", href: `/tasks${query({ text })}`, text: searchSay.allTasks(text) });
  return [...found, ...pages];
}
