// @ts-check
// How a task is named and described, in rows and in heads alike.

import { refOf } from "./api.js";
import { number } from "./format.js";
import { Chip, html, Said } from "./parts.js";

/** @typedef {import("./store.js").Task} Task */

const BY_STATUS = /** @type {Record<string, string>} */ ({ pending: "queued", running: "working", paused: "waiting", completed: "completed", failed: "failed", cancelled: "cancelled" });

/** The situation of a task; of a server that does not tell it, what the status allows to say.
 * @param {Task} task @returns {import("./store.js").Standing} */
export function standingOf(task) {
  return task.situation ?? { kind: BY_STATUS[task.status] ?? "idle", say: "", since: null, until: task.due_at, you: 0 };
}

/** @param {{id: string, uid?: string}} task @param {string} [tab] */
export const hrefOf = (task, tab = "") => `/tasks/${refOf(task)}${tab && `/${tab}`}`;

/** @param {{task: {id: string, uid?: string}}} props */
export const TaskLink = ({ task }) => html`<a class="id" href=${hrefOf(task)} title=${task.id}><${Said} most=${120}>${task.id}<//></a>`;

/** @param {{task: Task}} props */
export const Situation = ({ task }) => html`<${Chip} kind=${standingOf(task).kind} />`;

/** "381 / 612 pages", "62 %". @param {any} progress */
export function progressText(progress) {
  if (!progress) return "";
  if (progress.done != null && progress.total != null) return `${number(progress.done)} / ${number(progress.total)}`;
  if (progress.percent != null) return `${Math.round(progress.percent)} %`;
  return progress.done != null ? number(progress.done) : "";
}
