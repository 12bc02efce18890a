// @ts-check
// One field that finds tasks by id, functions, open questions and pages.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, query, segment } from "./api.js";
import { closeDialog, Dialog, openDialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { Chip, html, Said, useRead } from "./parts.js";
import { go } from "./router.js";
import { pageSay } from "./say/common.js";
import { searchSay } from "./say/search.js";
import { hrefOf, standingOf } from "./tasks_parts.js";

/** @typedef {{key: string, group: string, href: string, text: string, kind?: string, note?: string}} Hit */

export const openSearch = () => openDialog(Search);

function Search() {
  const [text, setText] = useState("");
  const [late, setLate] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => { const timer = setTimeout(() => setLate(text.trim()), 120); return () => clearTimeout(timer); }, [text]);
  useEffect(() => { field.current?.focus(); }, []);
  const { value: hits } = useRead((signal) => find(late, signal), [late]);
  useEffect(() => setAt(0), [hits]);
  const all = hits ?? [];
  const open = (/** @type {Hit} */ hit) => { closeDialog(); go(hit.href); };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setAt((n) => (n + (event.key === "ArrowDown" ? 1 : -1) + all.length) % Math.max(1, all.length)); }
    else if (event.key === "Enter" && all[at]) { event.preventDefault(); open(all[at]); }
  };
  return html`<${Dialog} title=${searchSay.title} class="search">
    <input ref=${field} class="input" type="search" role="combobox" aria-expanded="true" aria-controls="hits" aria-activedescendant=${all[at] ? `hit-${at}` : undefined} aria-label=${searchSay.title} placeholder=${searchSay.field} value=${text}
      onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)} onKeyDown=${press} maxlength="200" autocomplete="off" spellcheck=${false} />
    <ul id="hits" role="listbox" aria-label=${searchSay.title} class="hits">${all.map((hit, i) => html`<li key=${hit.key} id=${`hit-${i}`} role="option" aria-selected=${i === at} onClick=${() => open(hit)} onPointerMove=${() => setAt(i)}>
      ${hit.kind ? html`<${Chip} kind=${hit.kind} />` : html`<${Icon} name=${hit.group === "pages" ? "right" : "search"} size=${14} />`}<span class="hit-text"><${Said} most=${100}>${hit.text}<//></span>${hit.note && html`<span class="meta"><${Said} most=${80}>${hit.note}<//></span>`}</li>`)}</ul>
    ${hits && !all.length && html`<p class="meta">${searchSay.none}</p>`}<p class="meta">${searchSay.hint}</p><//>`;
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
  const none = { items: [] };
  const [tasks, facets, asked] = await Promise.all([
    get(`/v1/tasks${query({ text, limit: 8 })}`, signal).catch(() => none), get("/v1/facets", signal).catch(() => ({ functions: {} })), get("/v1/inbox?limit=100", signal).catch(() => none),
  ]);
  const found = /** @type {Hit[]} */ (tasks.items.map((/** @type {any} */ task) => ({ key: task.uid, group: "tasks", href: hrefOf(task), text: task.id, kind: standingOf(task).kind, note: task.function ?? "" })));
  for (const name of Object.keys(facets.functions)) if (name.toLowerCase().includes(low) && found.length < 20) found.push({ key: `f${name}`, group: "functions", href: `/tasks${query({ function: name })}`, text: name, note: searchSay.groups.functions });
  for (const pause of asked.items) if (`${pause.text ?? ""} ${pause.id}`.toLowerCase().includes(low) && found.length < 24) found.push({ key: pause.id, group: "questions", href: `/inbox/${segment(pause.id)}`, text: pause.text ?? pause.task, kind: "you", note: pause.task });
  if (tasks.next) found.push({ key: "all", group: "tasks", href: `/tasks${query({ text })}`, text: searchSay.allTasks(text) });
  return [...found, ...pages];
}
