// @ts-check
// The whole run on one canvas: every call as a line at its place in order and in time. Dragging chooses a stretch.

import { useEffect, useRef, useState } from "preact/hooks";
import { html, useSize } from "../parts.js";
import { journalSay } from "../say/task.js";
import { endOf, hueOf, isWait } from "./outline.js";
import { makeScale } from "./scale.js";

const HEIGHT = 44;

/** @param {{outline: import("./outline.js").Outline, now: number, folds: boolean, view: [number, number]|null, label: string, onZoom: (window: [number, number]|null) => void}} props */
export function Minimap({ outline, now, folds, view, label, onZoom }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const { width } = useSize(box);
  const [drag, setDrag] = useState(/** @type {[number, number]|null} */ (null));
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const again = () => setTheme((n) => n + 1);
    const query = matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", again);
    const watch = new MutationObserver(again);
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => { query.removeEventListener("change", again); watch.disconnect(); };
  }, []);
  const end = Math.max(outline.end, now);
  const scale = scaleOf(outline, now, end, Math.max(1, width), folds);
  useEffect(() => { if (canvas.current && width) draw(canvas.current, outline, scale, now, width); }, [outline, width, theme, folds, Math.floor(now / 1000)]);
  const x = (/** @type {PointerEvent} */ event) => event.clientX - /** @type {HTMLElement} */ (box.current).getBoundingClientRect().left;
  const down = (/** @type {PointerEvent} */ event) => { box.current?.setPointerCapture(event.pointerId); setDrag([x(event), x(event)]); };
  const move = (/** @type {PointerEvent} */ event) => { if (drag) setDrag([drag[0], x(event)]); };
  const up = () => {
    if (!drag) return;
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    if (b - a > 6) onZoom([Math.round(scale.at(a)), Math.round(scale.at(b))]);
    setDrag(null);
  };
  const brush = drag ? [Math.min(...drag), Math.max(...drag)] : view ? [scale.x(view[0]), scale.x(view[1])] : null;
  return html`<div class="minimap" ref=${box} role="img" aria-label=${label} title=${journalSay.minimap} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onDblClick=${() => onZoom(null)}>
    <canvas ref=${canvas}></canvas>${brush && html`<i class="brush" style=${{ left: `${brush[0]}px`, width: `${Math.max(2, brush[1] - brush[0])}px` }}></i>`}</div>`;
}

/** @param {import("./outline.js").Outline} o @param {number} now @param {number} end @param {number} width @param {boolean} folds */
function scaleOf(o, now, end, width, folds) {
  const busy = /** @type {[number, number][]} */ ([]);
  for (let i = 0; i < o.n; i++) if (!isWait(o, i)) busy.push([o.start[i], endOf(o, i, now)]);
  return makeScale(busy, 0, Math.max(1, end), width, folds);
}

/** @param {HTMLCanvasElement} node @param {import("./outline.js").Outline} o @param {import("./scale.js").Scale} scale @param {number} now @param {number} width */
function draw(node, o, scale, now, width) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  node.width = Math.round(width * ratio);
  node.height = HEIGHT * ratio;
  const pen = node.getContext("2d");
  if (!pen) return;
  const style = getComputedStyle(node);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  pen.scale(ratio, ratio);
  pen.fillStyle = colour("sunken");
  for (const piece of scale.pieces) if (piece.isFold) pen.fillRect(piece.x0, 0, piece.x1 - piece.x0, HEIGHT);
  const rows = HEIGHT - 10, thick = Math.max(1, Math.min(3, rows / Math.max(1, o.n) - 0.5));
  const byHue = /** @type {Map<string, number[]>} */ (new Map());
  for (let i = 0; i < o.n; i++) {
    const hue = hueOf(o, i), list = byHue.get(hue);
    if (list) list.push(i); else byHue.set(hue, [i]);
  }
  for (const [hue, list] of byHue) {
    pen.fillStyle = colour(`${hue}-fill`);
    for (const i of list) {
      const x0 = scale.x(o.start[i]), x1 = scale.x(endOf(o, i, now));
      pen.fillRect(x0, 5 + (rows * i) / Math.max(1, o.n), Math.max(1.2, x1 - x0), thick);
    }
  }
  pen.fillStyle = colour("ink-3");
  for (const attempt of o.attempts.slice(1, 200)) pen.fillRect(scale.x(attempt.start), 0, 1, HEIGHT);
}
