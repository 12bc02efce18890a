// @ts-check
// What the page Now shows, in one shape. A server with /v1/now tells it in one answer.

import { get, Problem } from "./api.js";
import { keepAll } from "./store.js";

/** @typedef {import("./store.js").Task} Task */
/** @typedef {{counts: any, inbox: any[], stuck: Task[], working: Task[], next: Task[], recent: Task[], health: any}} Now */

/** @param {AbortSignal} signal @returns {Promise<Now>} */
export async function loadNow(signal) {
  try {
    return settle(await get("/v1/now", signal));
  } catch (error) {
    if (!(error instanceof Problem && error.isAbsent)) throw error;
    return settle(await fromLists(signal));
  }
}

/** @param {any} told @returns {Now} */
function settle(told) {
  const lists = { inbox: [], stuck: [], working: [], next: [], recent: [], health: null, ...told };
  for (const list of [lists.working, lists.next, lists.recent]) keepAll(list.filter((/** @type {any} */ each) => each.uid && each.updated_at));
  return lists;
}

/** @param {AbortSignal} signal */
async function fromLists(signal) {
  const [counts, inbox, working, paused, ended] = await Promise.all([
    get("/v1/counts", signal),
    get("/v1/inbox?limit=10", signal),
    get("/v1/tasks?status=running&sort=changed&limit=10", signal),
    get("/v1/tasks?status=paused&sort=due&limit=10", signal),
    get("/v1/tasks?status=failed&status=completed&status=cancelled&sort=changed&limit=10", signal),
  ]);
  return { counts, inbox: inbox.items, working: working.items, next: paused.items.filter((/** @type {Task} */ task) => task.due_at), recent: ended.items };
}
