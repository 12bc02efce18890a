// @ts-check
// The filters of the list of tasks. Each lives in the address, so that a filtered list can be sent to others.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.js";
import { calendar, number, time } from "../format.js";
import { Icon } from "../icons.js";
import { html, useRead } from "../parts.js";
import { place, setQuery } from "../router.js";
import { tasksSay } from "../say/tasks.js";
import { clock } from "../store.js";
import { reread } from "../stream.js";
import { chosen, COLUMNS } from "./columns.js";

/** Tasks that a list leaves out unless it is asked for them. */
const SWITCHES = /** @type {("archived"|"hidden")[]} */ (["archived", "hidden"]);

/** @param {{params: URLSearchParams}} props */
export function FilterFields({ params }) {
  const [isOpen, setOpen] = useState(false); // on a phone
  const { value: facets } = useRead((signal) => get("/v1/facets", signal), [reread.value > 0]);
  return html`<button type="button" class="btn narrow-only" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${tasksSay.filters}</button>
    <span class=${`more-filters ${isOpen ? "open" : ""}`}><${Choice} name="function" any=${tasksSay.functionAny} all=${facets?.functions} params=${params} />
    <${Choice} name="agent" any=${tasksSay.agentAny} all=${facets?.agents} params=${params} />
    <label class="visually-hidden" for="task-sort">${tasksSay.sortLabel}</label>
    <select id="task-sort" class="input compact" value=${params.get("sort") ?? "newest"} onChange=${(/** @type {any} */ e) => setQuery({ sort: e.currentTarget.value === "newest" ? null : e.currentTarget.value })}>
      ${Object.entries(tasksSay.sort).map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select>
    <${Since} params=${params} />
    ${SWITCHES.filter((name) => params.get(name) === "true").map((name) => html`<button type="button" class="chip off removable" key=${name} onClick=${() => setQuery({ [name]: null })}>${tasksSay.also[name]}<${Icon} name="close" size=${12} /></button>`)}
    ${[...params].filter(([name]) => name.startsWith("tag.")).map(([name, value]) => html`<button type="button" class="chip off removable" key=${name} onClick=${() => setQuery({ [name]: null })}>${name.slice(4)}=${value}<${Icon} name="close" size=${12} /></button>`)}</span>
    <${Text} params=${params} />`;
}

/** @param {{name: string, any: string, all: Record<string, number>|undefined, params: URLSearchParams}} props */
function Choice({ name, any, all, params }) {
  const current = params.get(name) ?? "";
  const names = Object.keys(all ?? {}).filter(Boolean);
  if (!current && names.length < 2) return null;
  if (current && !names.includes(current)) names.push(current);
  return html`<label class="visually-hidden" for=${`task-${name}`}>${any}</label>
    <select id=${`task-${name}`} class="input compact" value=${current} onChange=${(/** @type {any} */ e) => setQuery({ [name]: e.currentTarget.value || null }, { push: true })}>
      <option value="">${any}</option>${names.map((each) => html`<option key=${each} value=${each}>${each}${all?.[each] ? ` (${number(all[each])})` : ""}</option>`)}</select>`;
}

/** When a task began, as a moment that the address keeps. @param {{params: URLSearchParams}} props */
function Since({ params }) {
  const told = params.get("since") ?? "";
  const choose = (/** @type {any} */ event) => { const back = Number(event.currentTarget.value); setQuery({ since: back ? new Date(clock.peek() - back).toISOString() : null }, { push: true }); };
  return html`<label class="visually-hidden" for="task-since">${tasksSay.sinceLabel}</label>
    <select id="task-since" class="input compact" value=${told ? "told" : ""} onChange=${choose}><option value="">${tasksSay.sinceAny}</option>
      ${told && html`<option value="told" disabled>${tasksSay.since(calendar(time(told), clock.peek()))}</option>`}${Object.entries(tasksSay.sinceBack).map(([back, text]) => html`<option key=${back} value=${back}>${text}</option>`)}</select>`;
}

/** Text is sent when the typing pauses; `tag=value` becomes a filter by tag. @param {{params: URLSearchParams}} props */
function Text({ params }) {
  const told = params.get("text") ?? "";
  const [text, setText] = useState(told);
  const timer = useRef(0);
  useEffect(() => { setText(told); }, [told]);
  const type = (/** @type {any} */ event) => {
    const value = event.currentTarget.value;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ text: value.trim() || null }), 250);
  };
  const enter = (/** @type {KeyboardEvent} */ event) => {
    const found = /^([^=\s]+)=(.+)$/.exec(text.trim());
    if (event.key !== "Enter" || !found) return;
    clearTimeout(timer.current);
    setQuery({ text: null, [`tag.${found[1]}`]: found[2] }, { push: true });
  };
  return html`<span class="search-field"><${Icon} name="search" size=${14} /><input id="task-text" class="input compact" type="search" placeholder=${tasksSay.text} aria-label=${tasksSay.textLabel} value=${text} onInput=${type} onKeyDown=${enter} maxlength="200" autocomplete="off" spellcheck=${false} /></span>`;
}

/** Which columns are shown, and which tasks beside the usual ones. */
export function ColumnChoice() {
  const params = place.value.query;
  const flip = (/** @type {string} */ name) => { chosen.value = chosen.value.includes(name) ? chosen.value.filter((each) => each !== name) : [...chosen.value, name]; };
  return html`<button type="button" class="icon-btn" popovertarget="columns" title=${tasksSay.columnsTitle} aria-label=${tasksSay.columnsTitle}><${Icon} name="columns" /></button>
    <div id="columns" popover class="popover"><h2>${tasksSay.columnsTitle}</h2>${COLUMNS.map((column) => html`<label key=${column.name} class="check"><input type="checkbox" checked=${chosen.value.includes(column.name)} disabled=${column.name === "task"} onChange=${() => flip(column.name)} />${tasksSay.columns[/** @type {"task"} */ (column.name)]}</label>`)}
      <h2>${tasksSay.alsoTitle}</h2>${SWITCHES.map((name) => html`<label key=${name} class="check"><input type="checkbox" checked=${params.get(name) === "true"} onChange=${() => setQuery({ [name]: params.get(name) === "true" ? null : "true" }, { push: true })} />${tasksSay.also[name]}</label>`)}</div>`;
}
