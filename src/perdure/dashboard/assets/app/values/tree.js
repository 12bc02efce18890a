// @ts-check
// Any JSON as a tree to read: folded by size, searched, copied. Only the lines in view are in the document, so that a
// value of megabytes opens at once. What the server left out is loaded when it is opened.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Problem } from "../api.js";
import { line, visible } from "../format.js";
import { Icon } from "../icons.js";
import { html, Trouble, useSize } from "../parts.js";
import { valueSay } from "../say/values.js";
import { allNodes, findText, keyOf, linesOf, LONG, openAtFirst, valueAt } from "./json_lines.js";
import { NodeBar, TextView } from "./node.js";

/** @typedef {import("./json_lines.js").Line} Line */
/** @typedef {import("./json_lines.js").Path} Path */

let trees = 0;
const ROW = 24, FEW = 200, MOST_OPEN = 20_000, MOST_FOUND = 1000, OVER = 10;

/** `source` is an address that takes a path, as JSON, at its end: where the whole of a part can be read.
 * @param {{value: any, label: string, source?: string, at?: Path, onAt?: (path: Path) => void, isSmall?: boolean, head?: any}} props */
export function Tree({ value, label, source, at = [], onAt, isSmall = false, head }) {
  const [id] = useState(() => `tree-${++trees}`);
  const [opened, setOpened] = useState(() => withParents(openAtFirst(value), at));
  const [loaded, setLoaded] = useState(() => new Map());
  const [chosen, setChosen] = useState(keyOf(at));
  const [text, setText] = useState(/** @type {Path|null} */ (null));
  const [busy, setBusy] = useState("");
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [top, setTop] = useState(0);
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const { height } = useSize(box);
  const lines = useMemo(() => linesOf(value, opened, loaded), [value, opened, loaded]);
  const index = Math.max(0, lines.findIndex((each) => each.key === chosen));
  const current = lines[index];

  const choose = (/** @type {number} */ i) => {
    const next = lines[Math.max(0, Math.min(lines.length - 1, i))];
    setChosen(next.key);
    onAt?.(next.path);
    reveal(box.current, lines.indexOf(next));
  };
  const toggle = (/** @type {Line} */ each, wanted = !each.isOpen) => {
    setOpened((before) => { const after = new Set(before); if (wanted) after.add(each.key); else after.delete(each.key); return after; });
  };
  const fetchCut = async (/** @type {Line} */ each) => {
    const cut = each.cut;
    if (!cut?.at || busy) return;
    setBusy(each.key); setProblem(null);
    try {
      const isOuter = cut.kind === "object" || cut.kind === "list";
      const told = await get(isOuter ? cut.at : cut.at.replace("brief=true&", ""));
      const key = keyOf(each.path);
      setLoaded((before) => new Map(before).set(key, told.value));
      setOpened((before) => new Set(before).add(key));
      if (cut.kind === "text") setText(each.path);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    } finally { setBusy(""); }
  };
  const act = (/** @type {Line} */ each) => {
    if (each.cut) void fetchCut(each);
    else if (each.kind === "object" || each.kind === "list") toggle(each);
    else if (isLong(each)) setText(each.path);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== box.current) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "f") {
      const field = /** @type {HTMLInputElement|null} */ (box.current?.parentElement?.querySelector("input[type=search]") ?? null);
      if (field) { event.preventDefault(); field.focus(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const moves = /** @type {Record<string, () => void>} */ ({
      ArrowDown: () => choose(index + 1), ArrowUp: () => choose(index - 1), PageDown: () => choose(index + page), PageUp: () => choose(index - page),
      Home: () => choose(0), End: () => choose(lines.length - 1), Enter: () => act(current), " ": () => act(current),
      ArrowRight: () => (current.isOpen ? choose(index + 1) : act(current)),
      ArrowLeft: () => (current.isOpen ? toggle(current, false) : choose(parentOf(lines, index))),
    });
    if (moves[event.key]) { event.preventDefault(); moves[event.key](); }
  };
  useEffect(() => { if (at.length) reveal(box.current, index); }, []);
  const go = (/** @type {Path} */ path) => {
    const next = withParents(opened, path);
    setOpened(next);
    setChosen(keyOf(path));
    onAt?.(path);
    reveal(box.current, linesOf(value, next, loaded).findIndex((each) => each.key === keyOf(path)));
  };

  const isFew = lines.length <= FEW;
  const first = isFew ? 0 : Math.max(0, Math.floor(top / ROW) - OVER);
  const last = isFew ? lines.length : Math.min(lines.length, Math.ceil((top + (height || 600)) / ROW) + OVER);
  const shownText = text && valueAt(value, loaded, text);
  return html`<div class=${`value-view ${isSmall ? "small" : ""}`}>
    ${!isSmall && html`<${Tools} head=${head} root=${value} loaded=${loaded} onGo=${go} onOpen=${(/** @type {boolean} */ all) => setOpened(all ? allNodes(value, loaded, MOST_OPEN) : new Set(["[]"]))} />`}
    <div class="tree" role="tree" tabindex="0" aria-label=${label} aria-activedescendant=${`${id}-${index}`} ref=${box} onKeyDown=${keys} onScroll=${(/** @type {any} */ e) => setTop(e.currentTarget.scrollTop)}>
      <div class="tree-body" role="none" style=${{ height: `${lines.length * ROW}px` }}>${lines.slice(first, last).map((each, i) => html`<${Row} key=${each.key} line=${each} id=${`${id}-${first + i}`} place=${first + i} isChosen=${first + i === index} isBusy=${busy === each.key}
        onPress=${() => { choose(first + i); if (!isLong(each)) act(each); }} onAll=${() => { choose(first + i); act(each); }} />`)}</div></div>
    ${problem && html`<${Trouble} problem=${problem} />`}
    ${typeof shownText === "string" && html`<${TextView} text=${shownText} path=${text} onClose=${() => setText(null)} />`}
    <${NodeBar} path=${current.path} value=${valueAt(value, loaded, current.path)} source=${source} /></div>`;
}

/** @param {{line: Line, id: string, place: number, isChosen: boolean, isBusy: boolean, onPress: () => void, onAll: () => void}} props */
function Row({ line: each, id, place, isChosen, isBusy, onPress, onAll }) {
  const canOpen = each.kind === "object" || each.kind === "list" || each.cut !== null;
  return html`<div role="treeitem" id=${id} class=${`tree-row ${isChosen ? "chosen" : ""}`} aria-level=${each.depth + 1} aria-expanded=${canOpen ? each.isOpen : undefined} aria-selected=${isChosen} style=${{ transform: `translateY(${place * ROW}px)`, paddingLeft: `${8 + Math.min(each.depth, 24) * 16}px` }} onClick=${onPress}>
    <span class="twist">${canOpen && html`<${Icon} name=${each.isOpen ? "down" : "right"} size=${12} />`}</span>
    ${each.name !== null && html`<span class=${typeof each.name === "number" ? "tree-index" : "tree-key"}>${line(each.name, 120)}</span>`}
    <${Short} line=${each} isBusy=${isBusy} onAll=${onAll} /></div>`;
}

/** @param {{line: Line, isBusy: boolean, onAll: () => void}} props */
function Short({ line: each, isBusy, onAll }) {
  if (isBusy) return html`<span class="tree-count">${valueSay.loading}</span>`;
  const stop = (/** @type {Event} */ event) => { event.stopPropagation(); onAll(); };
  if (each.kind === "more") return html`<span class="tree-more">${each.cut?.kind === "keys" ? valueSay.moreKeys(each.count) : valueSay.moreItems(each.count)}</span>`;
  if (each.cut) {
    if (each.cut.kind === "text") return html`<span class="tree-text">${quoted(each.cut.begin)}</span><button type="button" class="tree-all" tabindex="-1" onClick=${stop}>${valueSay.showAll(each.cut.length)}</button>`;
    return html`<span class="tree-count">${each.cut.kind === "list" ? `[…] ${valueSay.items(each.cut.length)}` : `{…} ${valueSay.keys(each.cut.length)}`}</span>`;
  }
  if (each.kind === "object" || each.kind === "list") {
    const isList = each.kind === "list";
    if (!each.count) return html`<span class="tree-word">${isList ? "[]" : "{}"}</span>`;
    const count = isList ? valueSay.items(each.count) : valueSay.keys(each.count);
    return html`<span class="tree-count">${each.isOpen ? count : `${isList ? "[…]" : "{…}"} ${count}`}${!each.isOpen && !isList && html` <i>${line(Object.keys(each.value).slice(0, 8).join(", "), 80)}</i>`}</span>`;
  }
  if (each.kind === "text") return html`<span class="tree-text">${quoted(each.value)}</span>${isLong(each) && html`<button type="button" class="tree-all" tabindex="-1" onClick=${stop}>${valueSay.showAll(each.value.length)}</button>`}`;
  return html`<span class=${each.kind === "number" ? "tree-number" : "tree-word"}>${visible(each.value)}</span>`;
}

/** @param {string} text */
const quoted = (text) => visible(JSON.stringify(text.length > LONG ? `${text.slice(0, LONG)}…` : text));
/** @param {Line} each */
const isLong = (each) => each.kind === "text" && (each.value.length > 100 || each.value.includes("\n"));

/** @param {{head?: any, root: any, loaded: Map<string, any>, onGo: (path: Path) => void, onOpen: (all: boolean) => void}} props */
function Tools({ head, root, loaded, onGo, onOpen }) {
  const [text, setText] = useState("");
  const [nth, setNth] = useState(-1);
  const { paths, isWhole } = useMemo(() => findText(root, loaded, text, MOST_FOUND), [root, loaded, text]);
  const step = (/** @type {number} */ by) => {
    if (!paths.length) return;
    const next = (nth + by + paths.length) % paths.length;
    setNth(next);
    onGo(paths[next]);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); } };
  return html`<div class="tree-tools">${head}<input type="search" class="input compact" placeholder=${valueSay.find} aria-label=${valueSay.findLabel} value=${text} onInput=${(/** @type {any} */ e) => { setText(e.currentTarget.value); setNth(-1); }} onKeyDown=${keys} />
    ${text && html`<span class="meta" role="status">${paths.length >= MOST_FOUND ? valueSay.foundMost(MOST_FOUND) : valueSay.found(nth + 1, paths.length)}</span>
      <button type="button" class="icon-btn" aria-label=${valueSay.previous} onClick=${() => step(-1)}><${Icon} name="up" /></button><button type="button" class="icon-btn" aria-label=${valueSay.next} onClick=${() => step(1)}><${Icon} name="down" /></button>
      ${!isWhole && html`<span class="meta">${valueSay.notSearched}</span>`}`}
    <span class="end acts"><button type="button" class="quiet" onClick=${() => onOpen(true)}>${valueSay.openAll}</button><button type="button" class="quiet" onClick=${() => onOpen(false)}>${valueSay.foldAll}</button></span></div>`;
}

/** @param {Set<string>} opened @param {Path} path */
function withParents(opened, path) {
  const after = new Set(opened);
  for (let length = 0; length < path.length; length++) after.add(keyOf(path.slice(0, length)));
  return after;
}

/** @param {Line[]} lines @param {number} index */
function parentOf(lines, index) {
  for (let i = index - 1; i >= 0; i--) if (lines[i].depth < lines[index].depth) return i;
  return index;
}

/** @param {HTMLElement|null} box @param {number} index */
function reveal(box, index) {
  if (!box || index < 0) return;
  requestAnimationFrame(() => {
    const top = index * ROW;
    if (top < box.scrollTop) box.scrollTop = top - ROW;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW - box.clientHeight;
  });
}
