// @ts-check
// What a list of tasks can show of each task, and which columns a person has chosen.

import { length, number, time } from "../format.js";
import { Bar, html, Moment, Said } from "../parts.js";
import { tasksSay } from "../say/tasks.js";
import { clock, kept } from "../store.js";
import { hrefOf, progressText, Situation, standingOf } from "../tasks_parts.js";

/** @typedef {import("../store.js").Task} Task */
/** @typedef {{name: string, width: string, cell: (task: Task) => any, isWide?: boolean}} Column */

/** How long it has been under way, or took. @param {Task} task */
function took(task) {
  const begin = time(task.started_at ?? task.created_at);
  const end = task.finished_at ? time(task.finished_at) : clock.value;
  return task.started_at || task.finished_at ? length(Math.max(0, end - begin)) : "";
}

/** @type {Column[]} */
export const COLUMNS = [
  { name: "task", width: "minmax(140px, 1.3fr)", cell: (task) => html`<a class="id" href=${hrefOf(task)} title=${task.id} tabindex="-1"><${Said} most=${120}>${task.id}<//></a>` },
  { name: "situation", width: "128px", cell: (task) => html`<${Situation} task=${task} />` },
  { name: "why", width: "minmax(120px, 2fr)", cell: (task) => (task.unreadable ? html`<span class="meta">${tasksSay.sealed}: <${Said}>${task.unreadable}<//></span>` : html`<${Said}>${standingOf(task).say}<//>`) },
  { name: "progress", width: "110px", cell: (task) => (task.progress ? html`<span class="cell-progress"><span>${progressText(task.progress)}</span><${Bar} progress=${task.progress} /></span>` : "") },
  { name: "function", width: "minmax(80px, 150px)", cell: (task) => html`<span class="mono"><${Said} most=${80}>${task.function ?? ""}<//></span>` },
  { name: "version", width: "64px", cell: (task) => task.version ?? "" },
  { name: "agent", width: "minmax(70px, 130px)", cell: (task) => html`<${Said} most=${80}>${task.agent}<//>` },
  { name: "queue", width: "minmax(60px, 110px)", cell: (task) => html`<${Said} most=${80}>${task.queue ?? ""}<//>` },
  { name: "tags", width: "minmax(80px, 180px)", cell: (task) => html`<${Said} most=${120}>${Object.entries(task.tags ?? {}).map(([key, value]) => `${key}=${value}`).join(" ")}<//>` },
  { name: "changed", width: "96px", cell: (task) => html`<${Moment} at=${task.updated_at} />` },
  { name: "created", width: "96px", cell: (task) => html`<${Moment} at=${task.created_at} />` },
  { name: "due", width: "96px", cell: (task) => html`<${Moment} at=${task.due_at} />` },
  { name: "took", width: "84px", cell: took },
  { name: "attempts", width: "72px", cell: (task) => number(task.attempts) },
];

export const chosen = kept("columns", ["task", "situation", "why", "function", "changed", "took", "attempts"]);
