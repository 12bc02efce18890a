// @ts-check
// Texts of acts on many tasks.

import { number } from "../format.js";
import { some } from "./common.js";

const WORDS = /** @type {Record<string, string>} */ ({ pause: "Pause", resume: "Resume", cancel: "Cancel", archive: "Archive", delete: "Delete" });

export const bulkSay = {
  title: (/** @type {string} */ verb) => `${WORDS[verb]} tasks`,
  button: (/** @type {string} */ verb, /** @type {number} */ n) => `${WORDS[verb]} ${some(n, "task")}`,
  would: (/** @type {string} */ verb, /** @type {number} */ n) => `This would ${WORDS[verb].toLowerCase()} ${some(n, "task")}.`,
  looking: "Looking at what would happen…",
  undone: (/** @type {Record<string, number>} */ effects) => `Effects to undo: ${Object.entries(effects).map(([name, n]) => `${name} ×${number(n)}`).join(", ")}.`,
  uncertain: (/** @type {number} */ n) => `${some(n, "effect is", "effects are")} uncertain and would be settled first.`,
  partial: "Only the effects of the first 200 tasks were looked at.",
  refused: (/** @type {number} */ n) => `${some(n, "task is", "tasks are")} left alone:`,
  first: (/** @type {number} */ n) => `The first ${number(n)}:`,
  typed: (/** @type {number} */ n) => `Type ${n} to confirm`,
  message: "Reason, shown with the pause",
  defaultMessage: "paused from the dashboard",
  none: "No task would change.",
  again: "Look again",
  running: (/** @type {string} */ say) => `Under way: ${say}`,
  done: (/** @type {number} */ n, /** @type {number} */ refused) => `${some(n, "task")} done${refused ? `, ${number(refused)} refused` : ""}.`,
  failed: "The job has failed.",
};
