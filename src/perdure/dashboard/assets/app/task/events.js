// @ts-check
// The events of a task, read in pages.

import { get } from "../api.js";

export const PAGE = 200;
const MOST = 5000;

/** Every event after a number. @param {import("./tabs.js").TaskRef["path"]} path @param {number} after @param {AbortSignal} signal @returns {Promise<Api.TaskEvent[]>} */
export async function eventsAfter(path, after, signal) {
  const items = /** @type {Api.TaskEvent[]} */ ([]);
  for (let from = after; ;) {
    const told = await get(`${path}/events?after=${from}&limit=${PAGE}`, signal);
    items.push(...told.items);
    if (told.items.length < PAGE || items.length > MOST) return items;
    from = told.items[told.items.length - 1].number;
  }
}
