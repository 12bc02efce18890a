// @ts-check
// The filters of the list of tasks. Each lives in the address, so that a filtered list can be sent to others.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.js";
import { number } from "../format.js";
import { Icon } from "../icons.js";
import { html, useRead } from "../parts.js";
import { setQuery } from "../router.js";
import { tasksSay } from "../say/tasks.js";
import { reread } from "../stream.js";
import { chosen, COLUMNS } from "./columns.js";

/** @param {{params: URLSearchParams}} props */
export function FilterFields({ params }) {
  const { value: facets } = useRead((signal) => get("/v1/facets", signal), [reread.value > 0]);
  return html`<${Choice} name="function" any=${tasksSay.functionAny} all=${facets?.functions} params=${params} />
    <${Choice} name="agent" any=${tasksSay.agentAny} all=${facets?.agents} params=${params} />
    <label class="visually-hidden" for="task-sort">${tasksSay.sortLabel}</label>
    <select id="task-sort" class="input compact" value=${params.get("sort") ?? "newest"} onChange=${(/** @type {any} */ e) => setQuery({ sort: e.currentTarget.value === "newest" ? null : e.currentTarget.value })}>
      ${Object.entries(tasksSay.sort).map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select>
    ${[...params].filter(([name]) => name.startsWith("tag.")).map(([name, value]) => html`<button type="button" class="chip off removable" key=${name} onClick=${() => setQuery({ [name]: null })}>${name.slice(4)}=${value}<${Icon} name="close" size=${12} /></button>`)}
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

export function ColumnChoice() {
  const flip = (/** @type {string} */ name) => { chosen.value = chosen.value.includes(name) ? chosen.value.filter((each) => each !== name) : [...chosen.value, name]; };
  return html`<button type="button" class="icon-btn" popovertarget="columns" title=${tasksSay.columnsTitle} aria-label=${tasksSay.columnsTitle}><${Icon} name="columns" /></button>
    <div id="columns" popover class="popover"><h2>${tasksSay.columnsTitle}</h2>${COLUMNS.map((column) => html`<label key=${column.name} class="check"><input type="checkbox" checked=${chosen.value.includes(column.name)} disabled=${column.name === "task"} onChange=${() => flip(column.name)} />${tasksSay.columns[/** @type {"task"} */ (column.name)]}</label>`)}</div>`;
}
