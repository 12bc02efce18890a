// @ts-check
// The tabs of a task. A tab is a module with `export default function Tab({task, record, turn})`:
//   task    {id, uid, ref, path}: `path` is its address in the API (/v1/tasks/…), `ref` in ours (/tasks/…)
//   record  what GET /v1/tasks/{task} told
//   turn    goes up when the task has changed: name it in `useRead(…, [turn])`
// `count` tells the number beside the word; undefined shows none.

/** @typedef {{id: string, uid: string, ref: string, path: string}} TaskRef */
/** @typedef {{name: string, load: () => Promise<{default: any}>, scope?: string, for?: "function"|"plain", count?: (told: any) => number|undefined}} TabEntry */

/** @type {TabEntry[]} */
export const TABS = [
  { name: "journal", load: () => import("./journal.js"), for: "function", count: (told) => told.calls },
  { name: "history", load: () => import("./history.js"), for: "plain" },
  { name: "state", load: () => import("./state.js"), scope: "data:read" },
];
