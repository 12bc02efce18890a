// @ts-check
// Every task that a filter finds, as a file with a JSON document on each line.

import { get, query } from "../api.js";
import { saveFile } from "../download.js";
import { tasksSay } from "../say/tasks.js";
import { announcement } from "../store.js";

const PAGE = 200, MOST = 100_000;

/** @param {Record<string, any>} filter of /v1/tasks */
export async function saveTasks(filter) {
  const lines = [];
  for (let cursor = /** @type {string|null} */ (""); cursor !== null && lines.length < MOST;) {
    const told = await get(`/v1/tasks${query({ ...filter, limit: PAGE, cursor })}`);
    for (const task of told.items) lines.push(`${JSON.stringify(task)}\n`);
    cursor = told.next;
  }
  saveFile("tasks.ndjson", "application/x-ndjson", lines);
  announcement.value = tasksSay.saved(lines.length);
}
