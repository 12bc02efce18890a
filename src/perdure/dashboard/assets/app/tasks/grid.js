// @ts-check
// A list of any length, of which only the rows in view are in the document.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "../router.js";
import { html, Moment, Said, useSize } from "../parts.js";
import { useKeys } from "../keys.js";
import { tasksSay } from "../say/tasks.js";
import { taskSignal } from "../store.js";
import { hrefOf, Situation, standingOf } from "../tasks_parts.js";
import { chosen, COLUMNS } from "./columns.js";

const OVERSCAN = 6;

/** @param {{uids: string[], total: number|null, picked: Set<string>, onPick: (uids: string[], on: boolean) => void, onEnd: () => void, onHold: (is: boolean) => void, footer: any}} props */
export function TaskGrid({ uids, total, picked, onPick, onEnd, onHold, footer }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const mark = useRef(0);
  const { width, height } = useSize(box);
  const isNarrow = width > 0 && width < 700;
  const row = isNarrow ? 60 : 32;
  const first = Math.max(0, Math.floor(top / row) - OVERSCAN);
  const last = Math.min(uids.length, Math.ceil((top + height) / row) + OVERSCAN);
  const columns = isNarrow ? [] : COLUMNS.filter((column) => chosen.value.includes(column.name));
  const template = `36px ${columns.map((column) => column.width).join(" ")}`;

  useEffect(() => { if (last >= uids.length - 20) onEnd(); }, [last, uids.length]);
  useEffect(() => { if (active >= uids.length) setActive(Math.max(0, uids.length - 1)); }, [uids.length]);

  const move = (/** @type {number} */ to) => {
    const next = Math.max(0, Math.min(uids.length - 1, to));
    setActive(next);
    const node = box.current;
    if (!node) return;
    if (next * row < node.scrollTop) node.scrollTop = next * row;
    else if ((next + 1) * row > node.scrollTop + node.clientHeight - 34) node.scrollTop = (next + 1) * row - node.clientHeight + 34;
    wantsFocus.current = true;
  };
  const wantsFocus = useRef(false);
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    const found = box.current?.querySelector(`[data-index="${active}"]`);
    if (found instanceof HTMLElement) { wantsFocus.current = false; found.focus({ preventScroll: true }); }
  });
  const pick = (/** @type {number} */ at, /** @type {boolean} */ isRange) => {
    const from = isRange ? mark.current : at;
    const span = uids.slice(Math.min(from, at), Math.max(from, at) + 1);
    onPick(span, isRange || !picked.has(uids[at]));
    mark.current = at;
  };
  const open = () => { const task = taskSignal(uids[active])?.peek(); if (task) go(hrefOf(task)); };
  useKeys({
    j: () => move(active + 1), k: () => move(active - 1), ArrowDown: () => move(active + 1), ArrowUp: () => move(active - 1),
    PageDown: () => move(active + Math.floor(height / row) - 1), PageUp: () => move(active - Math.floor(height / row) + 1),
    Home: () => move(0), End: () => move(uids.length - 1),
    x: () => pick(active, false), X: () => pick(active, true),
    Enter: (event) => { if (event.target instanceof HTMLElement && event.target.closest("button, a, input, summary")) return false; open(); },
  }, [active, uids, height, picked]);

  const hold = {
    onPointerEnter: (/** @type {PointerEvent} */ e) => e.pointerType === "mouse" && onHold(true), onPointerLeave: () => onHold(false),
    onFocusIn: () => onHold(true), onFocusOut: () => onHold(false),
  };
  return html`<div class=${`grid ${isNarrow ? "narrow" : ""}`} ref=${box} role="grid" aria-label=${tasksSay.title} aria-rowcount=${(total ?? uids.length) + 1} onScroll=${(/** @type {any} */ e) => setTop(e.currentTarget.scrollTop)}>
    <div class="grid-head" role="row" aria-rowindex="1" style=${isNarrow ? {} : { gridTemplateColumns: template }}>
      <span role="columnheader" class="tick"><span class="visually-hidden">${tasksSay.pick}</span><input type="checkbox" aria-label=${tasksSay.pickAll} checked=${uids.length > 0 && picked.size >= uids.length} onChange=${(/** @type {any} */ e) => onPick(uids, e.currentTarget.checked)} /></span>
      ${isNarrow ? html`<span role="columnheader">${tasksSay.columns.task}</span>` : columns.map((column) => html`<span key=${column.name} role="columnheader">${tasksSay.columns[/** @type {"task"} */ (column.name)]}</span>`)}
    </div>
    <div class="grid-body" role="presentation" style=${{ height: `${uids.length * row}px` }} ...${hold}>
      ${uids.slice(first, last).map((uid, i) => html`<${Row} key=${uid} uid=${uid} index=${first + i} height=${row} template=${template} columns=${columns} isNarrow=${isNarrow}
        isActive=${first + i === active} isPicked=${picked.has(uid)} onPick=${pick} onActive=${setActive} />`)}
    </div>${footer}</div>`;
}

/** @param {{uid: string, index: number, height: number, template: string, columns: import("./columns.js").Column[], isNarrow: boolean, isActive: boolean, isPicked: boolean, onPick: (at: number, range: boolean) => void, onActive: (at: number) => void}} props */
function Row({ uid, index, height, template, columns, isNarrow, isActive, isPicked, onPick, onActive }) {
  const task = taskSignal(uid)?.value;
  if (!task) return null;
  const style = { transform: `translateY(${index * height}px)`, height: `${height}px`, ...(isNarrow ? {} : { gridTemplateColumns: template }) };
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.target instanceof Element && event.target.closest("a, input, button")) return;
    if (!getSelection()?.toString()) go(hrefOf(task));
  };
  const tick = html`<span role="gridcell" class="tick"><input type="checkbox" tabindex="-1" aria-label=${tasksSay.pickRow(task.id)} checked=${isPicked} onClick=${(/** @type {MouseEvent} */ e) => onPick(index, e.shiftKey)} /></span>`;
  return html`<div role="row" class="grid-row" data-index=${index} aria-rowindex=${index + 2} aria-selected=${isPicked} tabindex=${isActive ? 0 : -1} style=${style} onClick=${open} onFocus=${() => onActive(index)}>
    ${tick}${isNarrow ? html`<span role="gridcell" class="two-lines"><span class="row-top"><a class="id" href=${hrefOf(task)} tabindex="-1"><${Said} most=${60}>${task.id}<//></a><span class="end"><${Moment} at=${task.updated_at} /></span></span>
      <span class="row-under"><${Situation} task=${task} /><span class="why"><${Said}>${standingOf(task).say || task.function || ""}<//></span></span></span>`
      : columns.map((column) => html`<span key=${column.name} role="gridcell" class=${`cell ${column.name}`}>${column.cell(task)}</span>`)}</div>`;
}
