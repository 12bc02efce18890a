// @ts-check
// Texts of the page of one task: its head, its situation, its tabs.

import { number } from "../format.js";
import { some } from "./common.js";

export const taskSay = {
  tabs: { journal: "Journal", history: "History", state: "State", checkpoints: "Checkpoints", effects: "Effects", units: "Units", family: "Family", attempts: "Attempts", audit: "Audit", cost: "Cost" },
  tabsLabel: "Parts of the task",
  version: (/** @type {number} */ n) => `version ${n}`,
  attempt: (/** @type {number} */ n) => `attempt ${number(n)}`,
  begun: "begun ",
  ended: "ended ",
  agent: (/** @type {string} */ name) => `agent ${name}`,
  queue: (/** @type {string} */ name) => `queue ${name}`,
  archived: "archived",
  money: (/** @type {string} */ amount) => `${amount} of money`,
  since: "since ",
  lasts: "for ",
  copyId: "Copy the id",
  verbs: { pause: "Pause…", resume: "Resume…", fork: "Fork…", rollback: "Roll back…", cancel: "Cancel…", archive: "Archive…", delete: "Delete…", signal: "Send a signal…", instruct: "Instruct…", take: "Take the lease…", stop: "Kill switch…", lift: "Lift the kill switch…", export: "Export…" },
  more: "More",
  copyLink: "Copy the link",
  copyCommand: "Copy as a command",
  goneTitle: "There is no such task",
  gone: "It was deleted, or it never was in this namespace.",
  toTasks: "All tasks",
  deleted: "This task was deleted. What is shown is how it was.",
  damaged: (/** @type {string} */ what) => `Damaged: ${what}. What is shown is the newest that can be read; perdure doctor says more.`,
  damagedPart: (/** @type {string} */ name) => (/^\d+$/.test(name) ? `checkpoint ${name}` : name),
  lastError: "Last error",
};

export const journalSay = {
  filters: { all: "All", effects: "Effects", retried: "Retried", failed: "Failed" },
  filtersLabel: "Which calls",
  text: "Find a call…",
  folded: "Idle folded",
  follows: "Axis follows rows",
  asCode: "As code",
  copyCode: "Copy the listing",
  line: (/** @type {number} */ n, /** @type {number} */ of) => `line ${n} of ${of}`,
  lineLabel: "Line of the journal",
  /** @param {string} waited @param {string} whole */
  waiting: (waited, whole) => `${waited} of ${whole} was waiting`,
  calls: (/** @type {number} */ n) => some(n, "call"),
  /** @param {number} n @param {string} worked @param {string} whole @param {number} retried */
  summary: (n, worked, whole, retried) => `${some(n, "call")}, ${worked} of work over ${whole}${retried ? `; ${some(retried, "call was", "calls were")} retried` : ""}`,
  minimap: "The whole run. Drag to choose a stretch; double-click shows all.",
  none: "No call yet",
  noneText: "The function has not recorded a call. Its first step, effect or pause will stand here.",
  notAllowed: "This takes the scope data:read.",
  tries: (/** @type {number} */ n) => `try ${n}`,
  /** @param {string} took @param {number} tries @param {string} state */
  bar: (took, tries, state) => `${took}${tries > 1 ? `, try ${tries}` : ""}, ${state}`,
  states: { d: "done", r: "raised", c: "cut off", o: "under way", u: "uncertain", p: "waits", x: "damaged" },
  effect: "effect",
  child: "task",
  following: "following",
  newCalls: (/** @type {number} */ n) => `${some(n, "new call")} ↓`,
  path: "path", took: "took", began: "began", attempt: "attempt", key: "key", settled: "settled by", undone: "undone", tokens: "tokens", money: "money",
  notKept: "They were too large to be kept in the journal.",
  arguments: "Arguments", result: "Result", error: "Error", triesTitle: "Tries", marks: "Notes", waits: "waits",
  withTries: (/** @type {string} */ took, /** @type {number} */ n) => (n > 1 ? `${took}, ${n} tries` : took),
  fork: "Fork after this…", json: "Open as JSON", close: "Close the call",
  binned: (/** @type {string} */ n) => `More than 50,000 calls: the map counts them, and the rows show those that are not simply done (${n}).`,
};
