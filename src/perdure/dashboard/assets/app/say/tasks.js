// @ts-check
// Texts of the page Tasks.

import { number } from "../format.js";
import { some } from "./common.js";

export const tasksSay = {
  title: "Tasks",
  /** @param {number} loaded @param {number|null} total @param {boolean} about */
  count: (loaded, total, about) => (total === null ? number(loaded) : `${about ? "about " : ""}${number(total)}`),
  groups: { all: "All", you: "Needs you", stuck: "Stuck", working: "Working", waits: "Waits", failed: "Failed", done: "Done" },
  groupsLabel: "Situation",
  filters: "Filters",
  text: "Id or name…",
  textLabel: "Filter by id or name",
  functionAny: "any function",
  agentAny: "any agent",
  sort: { newest: "newest first", changed: "changed last", due: "due next" },
  sortLabel: "Order",
  tag: "tag",
  tagHint: "key=value",
  archived: "archived too",
  clear: "Clear",
  columns: { task: "Task", situation: "Situation", why: "Why", function: "Function", agent: "Agent", queue: "Queue", changed: "Changed", created: "Begun", due: "Due", took: "Took", attempts: "Attempts", progress: "Progress", tags: "Tags", version: "Version" },
  columnsTitle: "Columns",
  pick: "Selected",
  pickRow: (/** @type {string} */ id) => `Select ${id}`,
  pickAll: "Select all rows that are loaded",
  changes: (/** @type {number} */ n) => `${some(n, "change")}`,
  noneTitle: "No task matches",
  clearAll: "Clear the filter",
  none: "No task yet",
  loadingMore: "Loading more…",
  end: (/** @type {number} */ n) => `${some(n, "task")}, all loaded`,
  picked: (/** @type {number} */ n) => `${some(n, "task")} selected`,
  allMatching: (/** @type {string} */ n) => `Take all ${n} that match`,
  unpick: "Clear the selection",
  verbs: { pause: "Pause…", resume: "Resume…", archive: "Archive…", cancel: "Cancel…", delete: "Delete…" },
  sealed: "not readable",
  exported: "Save as NDJSON",
  /** The filter in words. @param {[string, string][]} parts */
  inWords: (parts) => parts.map(([name, value]) => `${name} ${value}`).join(", "),
};
