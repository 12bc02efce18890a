// @ts-check
// What pages are made of: chips, moments, ids that can be copied, buttons that show their work, empty and broken states.
// Every text of others goes through `visible`, and is only ever text.

import { h } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import htm from "htm";
import { Problem } from "./api.js";
import { calendar, exact, line, relative, roughly, time, visible } from "./format.js";
import { Icon } from "./icons.js";
import { partsSay, situationSay } from "./say/common.js";
import { absoluteTimes, announcement, clock, isLost } from "./store.js";

export const html = htm.bind(h);

/** The colour of each kind of situation. @type {Record<string, string>} */
export const HUES = {
  working: "run", queued: "run", starting: "run", you: "you", stalled: "you", waiting: "wait", blocked: "wait",
  completed: "ok", failed: "bad", stuck: "bad", uncertain: "unsure", cancelled: "off", cancelling: "off", stopped: "off", idle: "off",
};
const SHAPES = /** @type {Record<string, string>} */ ({ starting: "queued", cancelling: "cancelled" });

/** @param {{kind: string, word?: string}} props */
export function Chip({ kind, word }) {
  return html`<span class=${`chip ${HUES[kind] ?? "off"}`}><${Icon} name=${SHAPES[kind] ?? kind} size=${12} /><span>${word ?? situationSay[kind] ?? kind}</span></span>`;
}

/** Text of others. @param {{children?: any, lines?: boolean, most?: number}} props */
export function Said({ children, lines = false, most = 160 }) {
  return html`<bdi class="said">${lines ? visible(children ?? "") : line(children ?? "", most)}</bdi>`;
}

/** A moment that stays true; `lasts`: how long ago, as a length. @param {{at: string|number|null|undefined, before?: string, lasts?: boolean}} props */
export function Moment({ at, before = "", lasts = false }) {
  const when = typeof at === "number" ? at : time(at);
  if (!when) return null;
  const now = clock.value;
  return html`<time datetime=${new Date(when).toISOString()} title=${exact(when)}>${before}${absoluteTimes.value ? calendar(when, now) : lasts ? roughly(now - when) : relative(when, now)}</time>`;
}

/** @param {{text: string, label?: string}} props */
export function Copy({ text, label = partsSay.copy }) {
  const [done, setDone] = useState(false);
  useEffect(() => { if (done) { const timer = setTimeout(() => setDone(false), 1500); return () => clearTimeout(timer); } }, [done]);
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); setDone(true); announcement.value = partsSay.copied; } catch { /* the browser refuses */ }
  };
  return html`<button type="button" class="copy" title=${done ? partsSay.copied : label} aria-label=${label} onClick=${copy}><${Icon} name=${done ? "done" : "copy"} size=${14} /></button>`;
}

/** @param {{children?: any, copy?: string, class?: string}} props */
export function Code({ children, copy, class: name = "" }) {
  return html`<span class=${`code ${name}`}><code>${typeof children === "string" ? visible(children) : children}</code>${copy !== undefined && html`<${Copy} text=${copy} />`}</span>`;
}

/** A button that does something at the server: it shows its work, and tells beside itself when it failed.
 * @param {{do: () => Promise<any>, children?: any, main?: boolean, danger?: boolean, small?: boolean, disabled?: boolean, id?: string, title?: string, onProblem?: (p: Problem|null) => void}} props */
export function Act({ do: act, children, main, danger, small, disabled, id, title, onProblem }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  const press = useCallback(async () => {
    setBusy(true); setProblem(null); onProblem?.(null);
    try { await act(); } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (alive.current) { if (onProblem) onProblem(error); else setProblem(error); }
    } finally { if (alive.current) setBusy(false); }
  }, [act, onProblem]);
  return html`<${Button} id=${id} main=${main} danger=${danger} small=${small} busy=${busy} disabled=${disabled || busy || isLost.value}
      title=${isLost.value ? partsSay.notLive : title} onClick=${press}>${children}<//>${problem && html`<${Trouble} problem=${problem} />`}`;
}

/** @param {{onClick?: (event: any) => void, children?: any, main?: boolean, danger?: boolean, small?: boolean, busy?: boolean, disabled?: boolean, title?: string, id?: string, type?: "button"|"submit", pressed?: boolean, expanded?: boolean, class?: string}} props */
export function Button({ onClick, children, main, danger, small, busy, disabled, title, id, type = "button", pressed, expanded, class: more = "" }) {
  const name = ["btn", main && "main", danger && "danger", small && "small", busy && "busy", more].filter(Boolean).join(" ");
  return html`<button id=${id} type=${type} class=${name} disabled=${disabled} title=${title} aria-pressed=${pressed} aria-expanded=${expanded} aria-busy=${busy} onClick=${onClick}>${children}</button>`;
}

/** What went wrong, what was kept, what to do. @param {{problem: Problem}} props */
export function Trouble({ problem }) {
  const text = problem.status === 0 ? partsSay.noAnswer : problem.message || partsSay.failed(problem.status);
  return html`<div class="trouble" role="alert"><strong><${Said} lines>${text}<//></strong>
    ${problem.kept && html`<span>${partsSay.kept} <${Said} lines>${problem.kept}<//></span>`}
    ${problem.do && html`<span>${partsSay.todo} <${Said} lines>${problem.do}<//></span>`}</div>`;
}

/** @param {{title: any, more?: any, children?: any, class?: string, id?: string, level?: number}} props */
export function Panel({ title, more, children, class: name = "", id }) {
  const head = `${id ?? String(title).replace(/\W+/g, "-").toLowerCase()}-head`;
  return html`<section class=${`panel ${name}`} aria-labelledby=${head} id=${id}><header><h2 id=${head}>${title}</h2>${more && html`<div class="more">${more}</div>`}</header>${children}</section>`;
}

/** An honest empty state: what is true, and what to do next. @param {{title?: string, children?: any, icon?: string}} props */
export function Empty({ title, children, icon }) {
  return html`<div class="empty">${icon && html`<${Icon} name=${icon} size=${20} />`}${title && html`<p class="empty-title">${title}</p>`}${children}</div>`;
}

/** Nothing for 300 ms, then grey rows. @param {{rows?: number}} props */
export function Skeleton({ rows = 3 }) {
  return html`<div class="skeleton" role="status" aria-label=${partsSay.loading}>${Array.from({ length: rows }, (_, i) => html`<i key=${i}></i>`)}</div>`;
}

/** @param {{progress: any}} props */
export function Bar({ progress }) {
  const done = progress?.done, total = progress?.total;
  const part = progress?.percent != null ? progress.percent / 100 : total ? done / total : null;
  if (part == null || Number.isNaN(part)) return null;
  const shown = Math.max(0, Math.min(1, part));
  return html`<div class="progress" role="progressbar" aria-label=${partsSay.progress} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(shown * 100)}><i style=${{ width: `${shown * 100}%` }}></i></div>`;
}

/** Read something from the server; again when a value of `again` changes. Older answers never win.
 * @template T @param {(signal: AbortSignal) => Promise<T>} load @param {any[]} again
 * @returns {{value: T|undefined, problem: Problem|null, reload: () => void}} */
export function useRead(load, again) {
  const [state, setState] = useState(/** @type {{value: any, problem: Problem|null}} */ ({ value: undefined, problem: null }));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(
      (value) => stop.signal.aborted || setState({ value, problem: null }),
      (error) => {
        if (stop.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setState((before) => ({ value: before.value, problem: error }));
      },
    );
    return () => stop.abort();
  }, [...again, turn]);
  return { ...state, reload: useCallback(() => setTurn((n) => n + 1), []) };
}

/** Keep the order of rows still while a pointer or the focus is in them; new rows wait until they are asked for.
 * @template T @param {T[]} items @param {(item: T) => string} keyOf */
export function useStill(items, keyOf) {
  const held = useRef(/** @type {string[]|null} */ (null));
  const [isHeld, setHeld] = useState(false);
  const [, redraw] = useState(0);
  const byKey = new Map(items.map((item) => [keyOf(item), item]));
  const seen = useRef(byKey);
  if (!isHeld) { held.current = null; seen.current = byKey; }
  else if (held.current === null) held.current = [...seen.current.keys()];
  const shown = held.current === null ? items
    : held.current.map((key) => byKey.get(key) ?? seen.current.get(key)).filter((item) => item !== undefined);
  const order = items.map(keyOf);
  const waiting = held.current === null ? 0
    : order.filter((key, i) => held.current?.[i] !== key).length + Math.max(0, held.current.length - order.length);
  const apply = () => { held.current = order; seen.current = byKey; redraw((n) => n + 1); };
  const props = {
    onPointerEnter: (/** @type {PointerEvent} */ e) => e.pointerType === "mouse" && setHeld(true),
    onPointerLeave: () => setHeld(false),
    onFocusIn: () => setHeld(true),
    onFocusOut: (/** @type {FocusEvent} */ e) => !(e.currentTarget instanceof Node && e.relatedTarget instanceof Node && e.currentTarget.contains(e.relatedTarget)) && setHeld(false),
  };
  return { items: /** @type {T[]} */ (shown), waiting, apply, props };
}

/** A component that is loaded when it is first shown. @param {() => Promise<any>} load */
export function lazy(load) {
  let found = /** @type {any} */ (null);
  return function Later(/** @type {any} */ props) {
    const [, redraw] = useState(0);
    useEffect(() => { if (!found) load().then((component) => { found = component; redraw(1); }); }, []);
    return found ? h(found, props) : h(Skeleton, { rows: 2 });
  };
}

/** The size of an element, kept true. @param {{current: HTMLElement|null}} ref */
export function useSize(ref) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const node = ref.current;
    if (!node) return;
    const look = () => setSize((before) => (before.width === node.clientWidth && before.height === node.clientHeight ? before : { width: node.clientWidth, height: node.clientHeight }));
    const watch = new ResizeObserver(look);
    watch.observe(node);
    look();
    return () => watch.disconnect();
  }, []);
  return size;
}
