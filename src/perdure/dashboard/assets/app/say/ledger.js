// @ts-check
// Texts of what a task has done, who worked on it, who is related to it, and what it has cost.

import { number } from "../format.js";
import { some } from "./common.js";

export const effectSay = {
  none: "No effect yet", noneText: "What the task does to the world, by functions marked as effects, will stand here.",
  columns: { call: "call", state: "state", tries: "tries", began: "began", took: "took", key: "key", more: "" },
  label: "Effects", filters: { all: "All", uncertain: "Uncertain", undone: "Undone", failed: "Failed" }, filtersLabel: "Which effects",
  csv: "CSV", json: "JSON", export: "Export:", settled: (/** @type {string} */ by) => `settled: ${by}`, undo: "can be undone", inherited: "done before the fork",
  undone: "undone", noneOfKind: "None of this kind.", file: (/** @type {string} */ id) => `effects of ${id}.csv`,
};

export const attemptSay = {
  none: "No attempt yet", noneText: "An attempt begins when a process takes the task up.",
  label: "Attempts",
  working: "works on it now", pid: (/** @type {number} */ n) => `pid ${n}`, epoch: (/** @type {number} */ n) => `epoch ${number(n)}`,
  gap: (/** @type {string} */ time) => `${time} without a process`,
};

export const familySay = {
  none: "No relatives", noneText: "No task has started this one, it has started none, and it depends on none.",
  source: "Forked from", parents: "Started by", children: "Has started", dependencies: "Depends on",
  total: (/** @type {number} */ n, /** @type {number} */ open) => `${some(n, "task")}, ${number(open)} open`,
  more: (/** @type {number} */ n) => `and ${number(n)} more`, absent: "not there yet", ended: "ended ", began: "made ",
  statuses: /** @type {Record<string, string>} */ ({ pending: "pending", running: "running", paused: "paused", completed: "completed", failed: "failed", cancelled: "cancelled" }),
};

export const auditSay = {
  none: "Nothing has happened yet", label: "Events",
  whole: (/** @type {number} */ n) => `Chain whole: ${some(n, "event")}`,
  broken: (/** @type {number|null} */ n) => (n === null ? "The chain is broken" : `The chain is broken: event ${number(n)} is the first that does not fit`),
  head: "head", checking: "Checking the chain…", older: "Earlier events",
};

export const costSay = {
  tokens: "tokens", money: "money", time: "time of work", saved: "Not repeated by its last attempt, thanks to the journal", nothingSaved: "Nothing: its first attempt ended it.",
  willSave: "Not repeated by its next attempt, thanks to the journal", nothingToSave: "Nothing is on record yet.",
  none: "No model call is on record", noneText: "Tokens and money are counted for calls to models inside a durable function.",
  by: "By function and model", columns: { function: "function", model: "model", calls: "calls", input: "tokens in", output: "tokens out", money: "money" },
  steps: (/** @type {number} */ n) => some(n, "step"), effects: (/** @type {number} */ n) => some(n, "effect"), calls: (/** @type {number} */ n) => some(n, "model call"), tokensOf: (/** @type {number} */ n) => some(n, "token"), timeOf: (/** @type {string} */ time) => `${time} of work`,
};
