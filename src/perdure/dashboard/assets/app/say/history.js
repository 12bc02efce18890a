// @ts-check
// Texts of what happened to a task.

import { number, size } from "../format.js";

/** What an event says beyond its kind. @type {Record<string, (data: any) => string>} */
const WORDS = {
  "task.created": (data) => (data.forked_from ? `the task was made as a fork of ${data.forked_from}` : data.module ? `the task was made, of module ${data.module}` : "the task was made"),
  "task.ready": () => "ready to begin",
  "task.paused": (data) => `paused${data.message ? `: ${data.message}` : data.reason ? `: ${data.reason}` : ""}`,
  "task.resumed": () => "resumed",
  "task.completed": () => "completed",
  "task.failed": (data) => `failed${data.message ? `: ${data.message}` : ""}`,
  "task.cancelled": () => "cancelled",
  "task.cancel_requested": () => "asked to be cancelled",
  "task.rolled_back": () => "rolled back",
  "task.archived": () => "archived",
  "task.signalled": (data) => `got a signal${data.name ? `: ${data.name}` : ""}`,
  "task.restored": () => "restored",
  "attempt.started": (data) => `an attempt began${data.epoch ? ` (epoch ${number(data.epoch)})` : ""}`,
  "attempt.ended": (data) => `the attempt ended${data.why ?? data.ended ? `: ${data.why ?? data.ended}` : ""}`,
  "attempt.taken_over": () => "another process took it over",
  "attempt.stalled": () => "no progress was seen",
  "attempt.lost": () => "its worker was lost",
  "checkpoint.stored": (data) => `a checkpoint was stored${data.size ? `, ${size(data.size)}` : ""}`,
  "checkpoint.saved": () => "its live things were saved",
  "checkpoint.damaged": () => "a checkpoint was found damaged",
  "pause.approved": (data) => `approved${data.by ? ` by ${data.by}` : ""}${data.comment ? `: ${data.comment}` : ""}`,
  "pause.rejected": (data) => `rejected${data.by ? ` by ${data.by}` : ""}${data.comment ? `: ${data.comment}` : ""}`,
  "pause.answered": (data) => `answered${data.by ? ` by ${data.by}` : ""}`,
  "pause.expired": () => "its question expired",
};

export const historySay = {
  none: "Nothing has happened yet",
  earlier: "Earlier events",
  label: "What happened",
  /** An event in words; of a kind that is not known here, the kind. @param {{kind: string, data?: any}} event */
  what: ({ kind, data }) => WORDS[kind]?.(data ?? {}) ?? kind,
  /** @param {any} author */
  author: (author) => [author?.user, author?.via && `via ${author.via}`, author?.host && `on ${author.host}`, author?.pid && `pid ${author.pid}`].filter(Boolean).join(" "),
};
