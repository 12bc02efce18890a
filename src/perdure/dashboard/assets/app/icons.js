// @ts-check
// Our icons: 16 units, strokes of 1.5 in currentColor. The shape differs by meaning, so that colour is never alone.

import { h } from "preact";

/** Paths that are stroked; a leading "#" is filled instead. @type {Record<string, string[]>} */
const PATHS = {
  // situations
  working: ["#M5 3.2v9.6L12.8 8z"],
  queued: ["M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2z", "#M8 4.2V8h3.8A3.8 3.8 0 0 0 8 4.2z"],
  you: ["M8 2.2 14.4 13.4H1.6z", "M8 6.4v3.2", "M8 11.4v.2"],
  waiting: ["M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2z", "M8 4.8V8l2.2 1.4"],
  blocked: ["M1.8 8h8.4", "M7 4.6 10.4 8 7 11.4", "M13.6 3v10"],
  stuck: ["M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4z", "M8 4.8v3.8", "M8 11v.2"],
  stopped: ["#M3.6 3.6h8.8v8.8H3.6z"],
  stalled: ["M5.4 3.4v9.2", "M10.6 3.4v9.2"],
  completed: ["M2.8 8.6 6.4 12l6.8-7.4"],
  failed: ["M3.8 3.8l8.4 8.4", "M12.2 3.8l-8.4 8.4"],
  cancelled: ["M3 8h10"],
  uncertain: ["M5.4 5.6a2.7 2.7 0 1 1 3.9 2.5c-.8.4-1.2.9-1.2 1.7", "M8.1 12.4v.2"],
  idle: ["M8 3.4a4.6 4.6 0 1 0 0 9.2 4.6 4.6 0 0 0 0-9.2z"],
  // things to do
  search: ["M7 2.6a4.4 4.4 0 1 0 0 8.8 4.4 4.4 0 0 0 0-8.8z", "M10.4 10.4l3.2 3.2"],
  copy: ["M5.6 5.6h7.2v7.2H5.6z", "M10.4 3.2H3.2v7.2"],
  done: ["M2.8 8.6 6.4 12l6.8-7.4"],
  more: ["M3.4 8h.2", "M8 8h.2", "M12.6 8h.2"],
  down: ["M4 6.2 8 10.2l4-4"],
  right: ["M6.2 4 10.2 8l-4 4"],
  left: ["M9.8 4 5.8 8l4 4"],
  up: ["M4 9.8 8 5.8l4 4"],
  close: ["M4 4l8 8", "M12 4l-8 8"],
  plus: ["M8 3v10", "M3 8h10"],
  filter: ["M2.4 4h11.2", "M4.6 8h6.8", "M6.6 12h2.8"],
  columns: ["M2.6 3h10.8v10H2.6z", "M6.2 3v10", "M9.8 3v10"],
  save: ["M8 2.6v7.2", "M4.8 6.8 8 10l3.2-3.2", "M3 13.2h10"],
  theme: ["M8 2.4a5.6 5.6 0 1 0 0 11.2z", "M8 2.4a5.6 5.6 0 0 1 0 11.2"],
  keyboard: ["M1.8 4.2h12.4v7.6H1.8z", "M4.4 7h.1", "M7 7h.1", "M9.6 7h.1", "M12 7h.1", "M5.4 9.6h5.2"],
  pin: ["M8 9.4v4.4", "M4.6 9.4h6.8L10 6.6V2.6H6v4z"],
  lock: ["M3.8 7.4h8.4v6H3.8z", "M5.4 7.4V5.2a2.6 2.6 0 0 1 5.2 0v2.2"],
  now: ["M2 8h2.6l2-4.6 3 9.2 1.8-4.6H14"],
  tasks: ["M2.6 4h1", "M2.6 8h1", "M2.6 12h1", "M6 4h7.6", "M6 8h7.6", "M6 12h7.6"],
  inbox: ["M2 9.2 4.2 3h7.6L14 9.2v3.8H2z", "M2 9.2h3.6L6.6 11h2.8l1-1.8H14"],
  operate: ["M8 5.6a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8z", "M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4"],
  terminal: ["M2 3h12v10H2z", "M4.4 6 6.6 8l-2.2 2", "M8 10.2h3.4"],
  undo: ["M3 6.4h6.4a3.4 3.4 0 0 1 0 6.8H6", "M5.6 3.6 2.8 6.4l2.8 2.8"],
};

/** @param {{name: string, size?: number, label?: string}} props */
export function Icon({ name, size = 16, label }) {
  const paths = PATHS[name] ?? PATHS.idle;
  return h("svg", {
    class: "icon", viewBox: "0 0 16 16", width: size, height: size, fill: "none", stroke: "currentColor",
    "stroke-width": size < 14 ? 1.9 : 1.6, "stroke-linecap": "round", "stroke-linejoin": "round",
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  }, paths.map((path) => path[0] === "#"
    ? h("path", { d: path.slice(1), fill: "currentColor", stroke: "none" })
    : h("path", { d: path })));
}
