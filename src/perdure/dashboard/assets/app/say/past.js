// @ts-check
// Texts of what a task has stored: its state and its checkpoints.

import { number } from "../format.js";
import { some } from "./common.js";

export const stateSay = {
  parts: { state: "State", plan: "Plan", memory: "Memory", partial: "Partial result", pending: "Pending calls" },
  partsLabel: "Which part",
  tree: (/** @type {string} */ part) => `${part} as a tree`,
  none: "No state is stored",
  noneText: "A task stores its state with its first checkpoint. It will stand here.",
  sealed: "Not readable",
  checkpoint: (/** @type {number} */ n) => `checkpoint ${number(n)}`,
  json: "Open as JSON",
  edit: "Edit in a fork…",
};

export const checkpointSay = {
  columns: { seq: "#", when: "when", cause: "cause", label: "label", size: "size", stored: "stored" },
  listLabel: "Checkpoints",
  none: "No checkpoint yet", noneText: "A task stores its state as a checkpoint. The first one will stand here.",
  now: "now", pinned: "pinned", aside: "set aside", superseded: "superseded", line: (/** @type {number} */ n) => `line ${number(n)}`,
  pin: "Pin", unpin: "Unpin", compare: "compare", compareWith: (/** @type {number} */ n) => `Compare with ${number(n)}`,
  choose: "Choose a checkpoint to see what it holds; compare it with a second one.",
  title: (/** @type {number} */ n) => `Checkpoint ${number(n)}`,
  pair: (/** @type {string} */ a, /** @type {string} */ b) => `From ${a} to ${b}`,
  swap: "Swap", fork: "Fork here…", rollback: "Roll back here…", older: "Older checkpoints", close: "Close", needsData: "To see what a checkpoint holds takes the scope data:read.",
};

export const diffSay = {
  same: "Nothing differs", sameText: "The two states are equal.",
  kinds: { added: "added", removed: "removed", changed: "changed", moved: "moved" },
  marks: { added: "+", removed: "−", changed: "~", moved: "↕" },
  root: "the whole state", from: (/** @type {string} */ path) => `from ${path}`,
  before: "Before", after: "After",
  /** @param {number} shown @param {number} all */
  first: (shown, all) => `${number(all)} changes, of which the first ${number(shown)} are listed:`,
  others: "The others are in:",
  listLabel: "Changes",
};
