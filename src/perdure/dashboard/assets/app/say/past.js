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
  compare: (/** @type {number} */ n) => `Compare with ${number(n)}`,
  json: "Open as JSON",
  empty: "The state is empty.",
  changes: (/** @type {number} */ n) => some(n, "change"),
};
