// @ts-check
// An outline as columns that can be drawn: when each call began and ended, its tries, its colour. Pure.

/** @typedef {{n: number, line: number, lines: any[], begun: number, upto: number, names: string[], ops: string[], name: number[], op: number[], depth: number[],
 *   position: number[], start: Float64Array, took: Float64Array, state: string, tries: Map<number, number[]>, attempts: any[], marks: any[], binned: any, end: number}} Outline */

const WAITS = new Set(["pause", "wait", "timer", "sleep", "poll", "callback", "signal"]);
export const HUE_OF = /** @type {Record<string, string>} */ ({ d: "ok", r: "bad", c: "off", o: "run", u: "unsure", p: "you", x: "bad" });
export const ICON_OF = /** @type {Record<string, string>} */ ({ d: "completed", r: "failed", c: "cancelled", o: "working", u: "uncertain", p: "you", x: "stuck" });

/** @param {any} told @returns {Outline} */
export function decode(told) {
  const n = told.position.length;
  const start = new Float64Array(n), took = new Float64Array(n);
  let at = 0, end = 0;
  for (let i = 0; i < n; i++) {
    at += told.start[i];
    start[i] = at;
    took[i] = told.took[i];
    if (at + took[i] > end) end = at + took[i];
  }
  for (const attempt of told.attempts) end = Math.max(end, attempt.end ?? attempt.start);
  return { ...told, n, start, took, end, tries: new Map(told.tries) };
}

/** Whether a call is a wait, which is not activity. @param {Outline} o @param {number} i */
export const isWait = (o, i) => WAITS.has(o.ops[o.op[i]]) || o.names[o.name[i]].startsWith("pause.");

/** Whether a call is still under way. @param {Outline} o @param {number} i */
export const isOpen = (o, i) => o.state[i] === "o" || o.state[i] === "p";

/** When a call ended, or now. @param {Outline} o @param {number} i @param {number} now since `begun` */
export const endOf = (o, i, now) => (isOpen(o, i) ? Math.max(now, o.start[i]) : o.start[i] + o.took[i]);

/** How many tries a call took. @param {Outline} o @param {number} i */
export const triesOf = (o, i) => 1 + (o.tries.get(i)?.length ?? 0);

/** The colour of a call's bar. @param {Outline} o @param {number} i */
export const hueOf = (o, i) => (o.state[i] === "d" && isWait(o, i) ? "wait" : HUE_OF[o.state[i]] ?? "off");

/** Which calls a filter keeps. @param {Outline} o @param {string} filter */
export function indexes(o, filter) {
  const found = [];
  for (let i = 0; i < o.n; i++) {
    if (filter === "effects" ? o.ops[o.op[i]] === "effect" : filter === "retried" ? o.tries.has(i) : filter === "failed" ? "rux".includes(o.state[i]) : true) found.push(i);
  }
  return found;
}

/** @param {Outline} o */
export function totals(o) {
  let effects = 0, failed = 0;
  for (let i = 0; i < o.n; i++) {
    if (o.ops[o.op[i]] === "effect") effects++;
    if ("rux".includes(o.state[i])) failed++;
  }
  return { effects, failed, retried: o.tries.size };
}
