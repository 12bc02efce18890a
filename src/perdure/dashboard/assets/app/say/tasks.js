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
  text: "Id, name or tag=value…",
  textLabel: "Filter by id or name; tag=value and Enter filters by a tag",
  functionAny: "any function",
  agentAny: "any agent",
  sort: { newest: "newest first", changed: "changed last", due: "due next" },
  sortLabel: "Order",
  alsoTitle: "Also list",
  also: { archived: "archived tasks", hidden: "parts of other tasks" },
  sinceLabel: "When it began",
  sinceAny: "any time",
  sinceBack: { 3600000: "last hour", 86400000: "last 24 hours", 604800000: "last 7 days" },
  since: (/** @type {string} */ when) => `since ${when}`,
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
  saved: (/** @type {number} */ n) => `${some(n, "task")} saved`,
  /** The filter in words. @param {[string, string][]} parts */
  inWords: (parts) => parts.map(([name, value]) => (name === "text" ? `“${value}” in id or name` : name.startsWith("tag.") ? `tag ${name.slice(4)}=${value}` : `${name} ${value}`)).join(", "),
};
