// @ts-check
// Texts of the dialogs that act on one task.

import { number, size } from "../format.js";
import { some } from "./common.js";

export const verbSay = {
  titles: /** @type {Record<string, (id: string) => string>} */ ({
    cancel: (id) => `Cancel ${id}`, rollback: (id) => `Roll ${id} back`, fork: (id) => `Fork ${id}`, resume: (id) => `Resume ${id}`,
    pause: (id) => `Pause ${id}`, archive: (id) => `Archive ${id}`, signal: (id) => `Send ${id} a signal`, instruct: (id) => `Instruct ${id}`,
    take: (id) => `Take the lease of ${id}`, stop: (id) => `Stop ${id} by its kill switch`, delete: (id) => `Delete ${id}`,
  }),
  buttons: /** @type {Record<string, string>} */ ({
    cancel: "Cancel the task", rollback: "Roll back", fork: "Make the fork", resume: "Resume", pause: "Pause", archive: "Archive", signal: "Send",
    instruct: "Send", take: "Take it", stop: "Stop it", delete: "Delete for good",
  }),
  about: /** @type {Record<string, string>} */ ({
    pause: "The task stops at its next safe point and holds no process. Everything it has done stays.",
    archive: "It leaves every list. Its id, its journal and its checkpoints stay readable.",
    signal: "The durable function gets it where it waits for a signal of this name, now or later.",
    instruct: "Its next instruction() gives this text. Steps that ended stay done.",
    take: "The process that works on it can no longer write, and its attempt ends. A worker then goes on after the last finished call.",
    stop: "None of its steps, effects and model calls begins until the switch is lifted. What runs now is not interrupted.",
    delete: "Its journal, checkpoints, events and results are removed for good. A tombstone keeps its id and its end.",
    cancel: "It ends for good: a running attempt can no longer write.",
  }),
  looking: "Looking at what would happen…",
  again: "Look again",
  undoes: (/** @type {number} */ n) => `Undone, the newest first: ${some(n, "effect")}`,
  stays: (/** @type {number} */ n) => `Stays as it is: ${some(n, "effect")}`,
  staysDone: (/** @type {number} */ n) => `Stays done, and is not repeated: ${some(n, "effect")}`,
  uncertain: (/** @type {number} */ n) => `Uncertain: ${some(n, "effect")}. Whether ${n === 1 ? "it" : "they"} happened is settled first, perhaps by a person.`,
  uncertainFork: (/** @type {number} */ n) => `Under way at that place: ${some(n, "effect")}. The fork runs ${n === 1 ? "it" : "them"} on its own.`,
  children: (/** @type {number} */ n) => `Not ended with it: ${some(n, "open task")} that it started`,
  nothing: "No effect is touched, and no other task.",
  noUndo: "has no undo",
  key: "key",
  undoEffects: "Undo its effects first",
  // roll back
  to: "Back to checkpoint",
  checkpoint: (/** @type {any} */ each) => [`${each.seq}`, each.cause, each.label].filter(Boolean).join(" · "),
  since: (/** @type {number} */ n) => `${some(n, "effect has", "effects have")} run since.`,
  undo: "Undo them", keep: "Keep what they did",
  rollbackNote: "A new line of its journal begins there; the present one stays readable. Tokens and money stay spent.",
  noCheckpoint: "This task has no checkpoint to go back to.",
  // fork
  at: (/** @type {string} */ place) => `It begins after ${place}.`,
  atNow: "It begins after the last finished call. To begin earlier, choose a call in the journal, or a checkpoint.",
  atState: "It begins with the newest state. To begin with an earlier one, choose a checkpoint.",
  id: "Id of the fork",
  idTaken: "This id is in use.",
  idFree: "This id is free.",
  arguments: "Arguments",
  argumentsHint: "what the function is called with",
  state: "State",
  editState: "Edit the state",
  stateHint: "as JSON; keys can get other values, not other names",
  tooLarge: (/** @type {number} */ bytes) => `The state is ${size(bytes)}: too large to be edited here. \`perdure fork --set KEY=VALUE\` can.`,
  noData: "To see and edit what it begins with takes the scope data:read.",
  sets: "Changed",
  /** @param {string} before @param {string} after */
  change: (before, after) => `${before} → ${after}`,
  strayKey: "The fork's state has the keys of its source; this one is not among them.",
  lostKey: "A key cannot be left out; give it another value, such as null.",
  notObject: "A state is an object.",
  unchanged: "Nothing is changed: the fork repeats what comes after.",
  // resume
  comesBack: "What comes back",
  levels: /** @type {Record<string, string>} */ ({ kept: "kept", imaged: "from its image", rebuilt: "rebuilt", lost: "lost" }),
  findings: "What is different now",
  then: "Then",
  rerun: "Runs again, or is settled first",
  skipped: (/** @type {number} */ n) => `${number(n)} recorded ${n === 1 ? "call" : "calls"} will not run again.`,
  anyway: "Resume anyway",
  instruction: "New instruction",
  missing: "Secrets that are not here",
  // the others
  message: "Reason", messageHint: "shown with the pause",
  now: "Now: interrupt what runs, instead of at the next safe point",
  name: "Name", value: "Value", valueHint: "as JSON; empty: nothing",
  text: "Instruction", why: "Why", whyHint: "shown on its page",
  optional: "optional",
  done: /** @type {Record<string, string>} */ ({
    cancel: "The task is cancelled, or will be as soon as its effects are undone.", rollback: "The task goes on from the checkpoint.", fork: "The fork is made.", resume: "The task goes on.",
    pause: "The task is paused, or will be at its next safe point.", archive: "Archived.", signal: "The signal is sent.", instruct: "The instruction is sent.", take: "The lease is taken.", stop: "The kill switch is on.", delete: "Deleted.",
  }),
};
