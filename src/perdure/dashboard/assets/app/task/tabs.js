// @ts-check
// The tabs of a task. A tab is a module with `export default function Tab({task, record, turn})`:
//   task    {id, uid, ref, path}: `path` is its address in the API (/v1/tasks/…), `ref` in ours (/tasks/…)
//   record  what GET /v1/tasks/{task} told
//   turn    goes up when the task has changed: name it in `useRead(…, [turn])`
// `count` tells the number beside the word; undefined shows none.

import { get } from "../api.js";

/** @typedef {{id: string, uid: string, ref: string, path: `/v1/tasks/${string}`}} TaskRef */
/** @typedef {{name: string, load: () => Promise<{default: any}>, scope?: string, for?: "function"|"plain", count?: (told: any) => number|undefined}} TabEntry */

/** @type {TabEntry[]} */
export const TABS = [
  { name: "journal", load: () => import("./journal.js"), for: "function", count: (told) => told.calls },
  { name: "history", load: () => import("./history.js"), for: "plain" },
  { name: "state", load: () => import("./state.js"), scope: "data:read" },
  { name: "checkpoints", load: () => import("./checkpoints.js") },
  { name: "effects", load: () => import("./effects.js"), for: "function" },
  { name: "units", load: () => import("./units.js") },
  { name: "family", load: () => import("./family.js") },
  { name: "attempts", load: () => import("./attempts.js"), count: (told) => told.record.attempts?.length },
  { name: "audit", load: () => import("./audit.js") },
  { name: "cost", load: () => import("./cost.js"), for: "function" },
];

/** The numbers beside the words, of tabs that have not been opened. @param {TaskRef} task @param {AbortSignal} signal */
export async function countTabs(task, signal) {
  const told = async (/** @type {string} */ name, /** @type {string} */ path, /** @type {(found: any) => any} */ count) => {
    try { return [name, count(await get(`${task.path}/${path}`, signal))]; } catch { return [name, undefined]; }
  };
  const all = (/** @type {any} */ found) => (found.next ? undefined : found.items.length);
  return Object.fromEntries(await Promise.all([
    told("checkpoints", "checkpoints?limit=200", all), told("effects", "effects", all), told("audit", "audit", (found) => found.events),
    told("units", "units?limit=200", (found) => new Set(found.items.map((/** @type {any} */ unit) => unit.name)).size || undefined),
    told("family", "family?limit=1", (found) => found.parents.length + found.children_total + found.dependencies.length),
  ]));
}
