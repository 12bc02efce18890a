// @ts-check
// The journal as a timeline: each call as code on the left and as a bar on the right, of any number of calls.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Problem, query } from "../api.js";
import { length } from "../format.js";
import { enter, useKeys } from "../keys.js";
import { Button, Empty, html, lazy, Skeleton, Trouble, useRead, useSize } from "../parts.js";
import { place, setQuery } from "../router.js";
import { journalSay } from "../say/task.js";
import { clock, may } from "../store.js";
import { follow, reread } from "../stream.js";
import { useCalls } from "./calls.js";
import { Inspector } from "./inspector.js";
import { CallRow } from "./journal_row.js";
import { Minimap } from "./minimap.js";
import { decode, endOf, indexes, isOpen, isWait, totals } from "./outline.js";
import { axisLabels, makeScale } from "./scale.js";

const WHOLE = 60, OVERSCAN = 6;
const AsCode = lazy(() => import("./as_code.js").then((module) => module.default));

/** @param {{task: import("./tabs.js").TaskRef, situation: any, turn: number, onCount: (n: number) => void}} props */
export default function Journal({ task, situation, turn, onCount }) {
  const params = place.value.query;
  const line = params.get("line");
  const [grown, setGrown] = useState(0);
  const { value: told, problem } = useRead((signal) => get(`${task.path}/journal/outline${query({ line })}`, signal), [task.uid, turn, line, grown, reread.value]);
  const outline = useMemo(() => (told ? decode(told) : null), [told]);
  useEffect(() => { if (outline) onCount(outline.n); }, [outline?.n]);
  useEffect(() => {
    let timer = 0;
    const stop = follow([`journal:~${task.uid}`], (event, data) => {
      if (event === "entries" && data.uid === task.uid) timer ||= setTimeout(() => { timer = 0; setGrown((n) => n + 1); }, 250 + (told?.position.length ?? 0) / 10);
    });
    return () => { stop(); clearTimeout(timer); };
  }, [task.uid]);
  if (!outline) return problem ? html`<div class="body"><${Trouble} problem=${problem} /></div>` : html`<${Skeleton} rows=${8} />`;
  if (!outline.n) return html`<${Empty} title=${journalSay.none}><p>${journalSay.noneText}</p><//>`;
  return html`<${Timeline} task=${task} outline=${outline} params=${params} question=${situation.you === 1 ? situation.say : ""} />`;
}

/** `question`: what the one open pause asks. @param {{task: import("./tabs.js").TaskRef, outline: import("./outline.js").Outline, params: URLSearchParams, question: string}} props */
function Timeline({ task, outline, params, question }) {
  const filter = params.get("calls") ?? "all", text = params.get("find") ?? "";
  const folds = params.get("idle") !== "shown", byStart = params.get("order") === "start";
  const rowsAxis = params.has("axis") ? params.get("axis") === "rows" : outline.n > WHOLE;
  const zoom = readZoom(params.get("zoom"));
  const shown = useMemo(() => {
    const found = indexes(outline, filter);
    return byStart ? found.sort((a, b) => outline.start[a] - outline.start[b] || a - b) : found;
  }, [outline, filter, byStart]);
  const matches = useMatches(task, outline, text);
  const hasOpen = useMemo(() => { for (let i = 0; i < outline.n; i++) if (isOpen(outline, i)) return true; return false; }, [outline]);
  const now = (hasOpen ? clock.value : outline.begun + outline.end) - outline.begun;

  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const { width, height } = useSize(box);
  const [top, setTop] = useState(0);
  const isNarrow = width > 0 && width < 640;
  const row = isNarrow ? 46 : 26;
  const first = Math.max(0, Math.floor(top / row) - OVERSCAN);
  const last = Math.min(shown.length, Math.ceil((top + height) / row) + OVERSCAN);
  const inView = shown.slice(Math.max(0, Math.floor(top / row)), Math.ceil((top + height) / row));
  const calls = useCalls(task, outline, Math.min(...inView, outline.n - 1), Math.max(...inView, 0));

  const codeWidth = isNarrow ? 0 : Math.round(Math.min(560, Math.max(240, width * 0.42)));
  const barWidth = isNarrow ? width - 40 : Math.max(60, width - codeWidth - 12);
  const all = useMemo(() => { const found = []; for (let i = 0; i < outline.n; i++) found.push(i); return found; }, [outline]);
  const view = zoom ?? (rowsAxis && inView.length ? range(outline, inView, now) : /** @type {[number, number]} */ ([0, Math.max(outline.end, now)]));
  const drawn = zoom || !rowsAxis ? all : inView;
  const scale = makeScale(busyOf(outline, drawn, now), view[0], Math.max(view[0] + 1, view[1]), Math.max(1, barWidth - 76), folds);

  const chosen = chosenIndex(outline, params.get("call"));
  const at = chosen === null ? -1 : shown.indexOf(chosen);
  const scrollTo = (/** @type {number} */ index) => {
    const node = box.current;
    if (!node) return;
    if (index * row < node.scrollTop) node.scrollTop = index * row;
    else if ((index + 1) * row > node.scrollTop + node.clientHeight) node.scrollTop = (index + 1) * row - node.clientHeight;
  };
  const choose = (/** @type {number} */ index) => {
    const call = shown[Math.max(0, Math.min(shown.length - 1, index))];
    if (call === undefined) return;
    setQuery({ call: nameOf(outline, call) });
    scrollTo(shown.indexOf(call));
  };
  useEffect(() => { if (at >= 0) scrollTo(at); }, [outline.line, height > 0]);
  useEffect(() => {
    if (!zoom) return;
    const found = shown.findIndex((i) => endOf(outline, i, now) >= zoom[0]);
    if (found >= 0 && box.current) box.current.scrollTop = found * row;
  }, [params.get("zoom")]);
  const { isFollowing, news, catchUp } = useFollowing(box, shown.length, hasOpen);
  const odd = (/** @type {number} */ by) => {
    for (let i = at + by; i >= 0 && i < shown.length; i += by) if (outline.tries.has(shown[i]) || "ruxc".includes(outline.state[shown[i]])) return choose(i);
  };
  const setZoom = (/** @type {[number, number]|null} */ window) => setQuery({ zoom: window ? `${window[0]}-${window[1]}` : null });
  const scaleZoom = (/** @type {number} */ by) => {
    const middle = chosen !== null ? outline.start[chosen] : (view[0] + view[1]) / 2, half = ((view[1] - view[0]) * by) / 2;
    setZoom([Math.max(0, Math.round(middle - half)), Math.round(middle + half)]);
  };
  useKeys({
    j: () => choose(at + 1), k: () => choose(at - 1), ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1),
    Home: () => choose(0), End: () => choose(shown.length - 1), PageDown: () => choose(at + Math.floor(height / row)), PageUp: () => choose(Math.max(0, at - Math.floor(height / row))),
    e: () => odd(1), E: () => odd(-1), i: () => setQuery({ idle: folds ? "shown" : null }), w: () => setQuery({ axis: rowsAxis ? "run" : "rows", zoom: null }),
    o: () => setQuery({ order: byStart ? null : "start" }), "+": () => scaleZoom(0.5), "-": () => scaleZoom(2), 0: () => setZoom(null),
    Enter: (event) => enter(event, ".inspector-body .acts :is(button, a)"),
    Escape: () => { if (chosen === null) return false; setQuery({ call: null }); },
  }, [at, shown, folds, rowsAxis, byStart, view[0], view[1], height]);

  const sums = useMemo(() => totals(outline), [outline]);
  const worked = makeScale(busyOf(outline, all, now), 0, Math.max(1, outline.end, now), 1000, true);
  const summary = journalSay.summary(outline.n, length(worked.worked), length(worked.whole), sums.retried);
  const wantsNext = useRef(false);
  const next = () => {
    wantsNext.current = !matches?.size; // it was asked for before the answer has come
    if (!matches?.size) return;
    const after = shown.findIndex((i, n) => n > at && matches.has(outline.position[i]));
    choose(after >= 0 ? after : shown.findIndex((i) => matches.has(outline.position[i])));
  };
  useEffect(() => { if (wantsNext.current) next(); }, [matches]);
  const isCode = params.get("as") === "code" && may("data:read");
  return html`<div class=${`journal ${chosen !== null && !isCode ? "with-call" : ""}`}><div class="journal-main">
    <${Toolbar} isCode=${isCode} filter=${filter} sums=${sums} folds=${folds} rowsAxis=${rowsAxis} canFollow=${outline.n > WHOLE} outline=${outline} text=${text} matches=${matches} onNext=${next}
      waited=${worked.whole - worked.worked > 60_000 ? journalSay.waiting(length(worked.whole - worked.worked), length(worked.whole)) : ""} />
    ${isCode ? html`<${AsCode} task=${task} outline=${outline} />` : html`${outline.binned && html`<p class="note">${journalSay.binned(String(outline.n))}</p>`}
    <${Minimap} outline=${outline} now=${now} folds=${folds} view=${zoom ?? (outline.n > WHOLE && inView.length ? range(outline, inView, now) : null)} label=${summary} onZoom=${setZoom} />
    ${!isNarrow && html`<div class="axis" aria-hidden="true" style=${{ marginLeft: `${codeWidth + 12}px` }}>${axisLabels(scale, length, barWidth - 60).map((label) => html`<span key=${label.text + label.x} class=${label.isFold ? "fold" : ""} style=${{ transform: `translateX(${label.x}px) translateX(-50%)` }}>${label.text}</span>`)}</div>`}
    <div class="calls" ref=${box} role="table" aria-label=${summary} aria-rowcount=${shown.length} tabindex="0" onScroll=${(/** @type {any} */ e) => setTop(e.currentTarget.scrollTop)}>
      <div class="calls-body" style=${{ height: `${shown.length * row}px` }}>
        ${!isNarrow && scale.pieces.filter((piece) => piece.isFold).map((piece) => html`<i key=${piece.from} class="fold-shade" style=${{ left: `${codeWidth + 12 + piece.x0}px`, width: `${piece.x1 - piece.x0}px` }}></i>`)}
        ${shown.slice(first, last).map((i, n) => html`<${CallRow} key=${(first + n) % (last - first + 1)} outline=${outline} index=${i} top=${(first + n) * row} height=${row} call=${calls.get(i)} question=${question} scale=${scale} now=${now}
          codeWidth=${codeWidth} barWidth=${barWidth} isNarrow=${isNarrow} isChosen=${i === chosen} isDim=${matches !== null && !matches.has(outline.position[i])} row=${first + n + 1} onChoose=${() => choose(first + n)} />`)}
      </div></div>
    ${news > 0 ? html`<button type="button" class="pill news" onClick=${catchUp}>${journalSay.newCalls(news)}</button>` : isFollowing && html`<span class="pill news">${journalSay.following}</span>`}`}
  </div>
  ${chosen !== null && !isCode && html`<${Inspector} task=${task} outline=${outline} index=${chosen} call=${calls.get(chosen)} onClose=${() => setQuery({ call: null })} />`}</div>`;
}

/** @param {{isCode: boolean, filter: string, sums: {effects: number, failed: number, retried: number}, folds: boolean, rowsAxis: boolean, canFollow: boolean, outline: import("./outline.js").Outline, text: string, matches: Set<number>|null, waited: string, onNext: () => void}} props */
function Toolbar({ isCode, filter, sums, folds, rowsAxis, canFollow, outline, text, matches, waited, onNext }) {
  const timer = useRef(0);
  const type = (/** @type {any} */ event) => { const value = event.currentTarget.value; clearTimeout(timer.current); timer.current = setTimeout(() => setQuery({ find: value.trim() || null }), 200); };
  const number = /** @type {Record<string, number|undefined>} */ ({ all: undefined, ...sums });
  return html`<div class="toolbar">
    <div class="seg" role="group" aria-label=${journalSay.filtersLabel}>${Object.entries(journalSay.filters).map(([name, word]) => html`<button type="button" key=${name} aria-pressed=${filter === name} onClick=${() => setQuery({ calls: name === "all" ? null : name })}>${word}${number[name] !== undefined && html` <b>${number[name]}</b>`}</button>`)}</div>
    <${Button} small pressed=${folds} onClick=${() => setQuery({ idle: folds ? "shown" : null })}>${journalSay.folded}<//>
    ${canFollow && html`<${Button} small pressed=${rowsAxis} onClick=${() => setQuery({ axis: rowsAxis ? "run" : "rows", zoom: null })}>${journalSay.follows}<//>`}
    ${may("data:read") && html`<${Button} small pressed=${isCode} onClick=${() => setQuery({ as: isCode ? null : "code" })}>${journalSay.asCode}<//>`}
    ${outline.lines.length > 1 && html`<select class="input compact" aria-label=${journalSay.lineLabel} value=${String(outline.line)} onChange=${(/** @type {any} */ e) => setQuery({ line: e.currentTarget.value, call: null, zoom: null })}>${outline.lines.map((each) => html`<option key=${each.line} value=${each.line}>${journalSay.line(each.line, outline.lines.length)}</option>`)}</select>`}
    <input class="input compact find-call" type="search" placeholder=${journalSay.text} aria-label=${journalSay.text} value=${text} onInput=${type} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") onNext(); }} maxlength="200" autocomplete="off" />
    ${matches && html`<span class="meta">${journalSay.calls(matches.size)}</span>`}<span class="meta waited">${waited}</span></div>`;
}

/** The calls that a text is found in: by name here, by arguments and results at the server.
 * @param {{path: string}} task @param {import("./outline.js").Outline} outline @param {string} text @returns {Set<number>|null} */
function useMatches(task, outline, text) {
  const { value } = useRead(async (signal) => {
    if (!text || !may("data:read")) return null;
    try { return (await get(`${task.path}/journal${query({ line: outline.line, text, limit: 200 })}`, signal)).items.map((/** @type {any} */ call) => call.position); }
    catch (error) { if (error instanceof Problem && error.status !== 0) return null; throw error; }
  }, [text, outline.upto]);
  return useMemo(() => {
    if (!text) return null;
    const found = new Set(/** @type {number[]} */ (value ?? [])), low = text.toLowerCase();
    const names = new Set(outline.names.map((name, i) => (name.toLowerCase().includes(low) ? i : -1)));
    for (let i = 0; i < outline.n; i++) if (names.has(outline.name[i])) found.add(outline.position[i]);
    return found;
  }, [text, outline, value]);
}

/** Stay at the end while calls come in, if the view is there. @param {{current: HTMLElement|null}} box @param {number} count @param {boolean} isLive */
function useFollowing(box, count, isLive) {
  const before = useRef(count), atEnd = useRef(false);
  const [news, setNews] = useState(0);
  useEffect(() => {
    const node = box.current;
    if (!node) return;
    const look = () => { atEnd.current = node.scrollTop > 0 && node.scrollTop + node.clientHeight >= node.scrollHeight - 30; if (atEnd.current) setNews(0); };
    node.addEventListener("scroll", look, { passive: true });
    return () => node.removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    const more = count - before.current;
    before.current = count;
    const node = box.current;
    if (more <= 0 || !node) return;
    if (atEnd.current) node.scrollTop = node.scrollHeight;
    else if (node.scrollHeight > node.clientHeight + 30) setNews((n) => n + more);
  }, [count]);
  const catchUp = () => { if (box.current) box.current.scrollTop = box.current.scrollHeight; setNews(0); };
  return { isFollowing: isLive && atEnd.current, news, catchUp };
}

/** @param {import("./outline.js").Outline} o @param {number[]} list @param {number} now @returns {[number, number][]} */
const busyOf = (o, list, now) => list.filter((i) => !isWait(o, i)).map((i) => [o.start[i], endOf(o, i, now)]);

/** @param {import("./outline.js").Outline} o @param {number[]} list @param {number} now @returns {[number, number]} */
function range(o, list, now) {
  let from = Infinity, to = -Infinity;
  for (const i of list) { from = Math.min(from, o.start[i]); to = Math.max(to, endOf(o, i, now)); }
  return [from, Math.max(to, from + 1)];
}

/** @param {string|null} text @returns {[number, number]|null} */
function readZoom(text) {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  return found && Number(found[2]) > Number(found[1]) ? [Number(found[1]), Number(found[2])] : null;
}

/** How a call is named in the address: by position, and one that has none yet by its place. @param {import("./outline.js").Outline} o @param {number} i */
const nameOf = (o, i) => (o.position[i] ? String(o.position[i]) : `open${i}`);

/** @param {import("./outline.js").Outline} o @param {string|null} name */
function chosenIndex(o, name) {
  if (!name) return null;
  const found = name.startsWith("open") ? Number(name.slice(4)) : o.position.indexOf(Number(name));
  return found >= 0 && found < o.n ? found : null;
}
