// @ts-check
// Texts of units, their terminals, and what a resume brings back.

import { length, number, size } from "../format.js";
import { some } from "./common.js";

/** @param {string} word */
const quoted = (word) => (/^[\w.:@/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export const unitsSay = {
  none: "This task has no shell, service or file of its own.",
  back: "All units",
  levels: /** @type {Record<string, string>} */ ({ kept: "kept", imaged: "imaged", rebuilt: "rebuilt", lost: "lost" }),
  earlier: (/** @type {number} */ n) => `${some(n, "unit")} of these names that ended before`,
  lives: "alive", secret: "waits for a password", prompt: "at its prompt",
  ended: (/** @type {number|null} */ status) => (status == null || status < 0 ? "ended" : (status & 127) ? `ended by signal ${status & 127}` : `ended, exit code ${status >> 8}`),
  pid: (/** @type {number} */ n) => `pid ${n}`,
  since: "since ", endedAt: "ended ",
  types: (/** @type {any} */ writer) => (writer.you ? "you type" : `${writer.name} types`),
  open: "Open the terminal", output: "Show its output", details: "Details",
  end: "End…", tail: "Last output", noTail: "It has put out nothing yet.",
  facts: { level: "came back as", why: "because", same: "the same", differs: "differs", since_you_left: "since you left", do_not_assume: "do not assume", options: "you can", made: "made by", cwd: "begins in", limits: "limits", recipe: "recipe", owner: "of task", size: "terminal", output: "output", held: "held by" },
  grid: (/** @type {any} */ unit) => `${unit.columns} × ${unit.rows}`,
  bytes: (/** @type {any} */ unit) => (unit.begin > 0 ? `${size(unit.end)}, the last ${size(unit.end - unit.begin)} are kept` : size(unit.end)),
  limit: (/** @type {string} */ name, /** @type {number} */ value) => (name.endsWith("seconds") ? `${name.replaceAll("_", " ")}: ${length(value * 1000)}` : `${name}: ${name === "memory" ? size(value) : number(value)}`),
  attach: (/** @type {string} */ task, /** @type {string} */ name) => `perdure attach ${[task, name].map(quoted).join(" ")}`,
  onCommandLine: "On a command line:",
};

export const restoreSay = {
  report: "How it came back",
  plan: "What a resume would bring back",
  look: "Look", again: "Look again",
  planWhy: "Each unit is looked at as it is now. Nothing is started or changed.",
  at: "restored ", on: (/** @type {string} */ host) => `on ${host}`, from: (/** @type {string} */ host) => `saved on ${host}`,
  surroundings: "surroundings",
  checkpoint: (/** @type {string} */ id) => `from checkpoint ${id.split(".").at(-1)}`,
  levels: (/** @type {Record<string, number>} */ counts) => Object.entries(counts).map(([level, n]) => `${n} ${level}`).join(", "),
  nothing: "Nothing was saved and nothing is held: it continues from its journal alone.",
  changed: "changed:", missing: "secret not here:", warning: "warning:", credential: "credential:", damaged: "damaged checkpoints, passed over:",
  skipped: (/** @type {number} */ n) => `${some(n, "finished call is", "finished calls are")} not run again.`,
  rerun: "runs again or is settled first:", then: "Then", refuses: "A resume is refused while this differs.",
};

export const endSay = {
  title: (/** @type {string} */ name) => `End ${name}`,
  button: (/** @type {number} */ n) => (n > 1 ? `End ${some(n, "process", "processes")}` : "End it"),
  would: (/** @type {number} */ n) => (n ? `This ends ${some(n, "process", "processes")}:` : "No process of it is left; its record is closed."),
  gone: "What runs in it is lost. Its output stays readable.",
  comesBack: "A resume makes a new one from its recipe, if it was saved.",
  writer: (/** @type {string} */ name) => `${name} is typing into it now.`,
};

export const terminalSay = {
  title: (/** @type {string} */ name) => `Terminal of ${name}`,
  outputTitle: (/** @type {string} */ name) => `Output of ${name}`,
  reading: "Reading only.", typing: "You type.", writes: (/** @type {string} */ name) => `${name} types.`,
  take: "Type here", takeFrom: (/** @type {string} */ name) => `Take over from ${name}`, give: "Stop typing",
  noScope: "To type takes the scope units:type.",
  leave: "Ctrl-] or Shift-Esc gives the keys back to the page.",
  agentTitle: "Take it from its agent",
  agentWarns: (/** @type {string} */ name) => `${name} of the agent holds this terminal. While you type it cannot: a command it sends is refused until you stop typing.`,
  agentButton: "Take over",
  taken: (/** @type {string} */ name) => `${name} took over. What you typed after that was not sent.`,
  takenBySome: "The right to type is gone. What you typed after that was not sent.",
  uncertain: "Part of what you typed last may have arrived, part may not. It is not sent again; look at the terminal.",
  stuck: "The server does not answer. What you type waits and is sent once it does.",
  lost: "The line is broken, trying again. Nothing is missed: it continues at the same byte.",
  gap: (/** @type {number} */ n) => `${number(n)} bytes are no longer kept here.`,
  gapMark: (/** @type {number} */ n) => `[${number(n)} bytes are no longer kept]`,
  skipped: (/** @type {number} */ n) => `${size(n)} before this are not shown.`, showAll: "Show all",
  another: "The unit has ended. What follows is from a new one of this name.",
  anotherMark: "[a new unit of this name]",
  over: (/** @type {number|null} */ status) => `${unitsSay.ended(status)[0].toUpperCase()}${unitsSay.ended(status).slice(1)}.`,
  gone: "Its output cannot be read any more.",
  find: "Find in the output", findNext: "Next", findNone: "not found", copy: "Copy the selection", copied: "The selection is copied.", nothingChosen: "Nothing is selected.",
  readAloud: "Read aloud", readAloudHint: "Tells screen readers what is put out",
  pasteTitle: (/** @type {number} */ n) => `Paste ${some(n, "line")}?`, pasteButton: (/** @type {number} */ n) => `Paste ${some(n, "line")}`,
  pasteWhy: "A shell carries out each line as it comes, unless its program waits for the end of the paste.",
};

export const secretSay = {
  label: "It waits for a password", send: "Send", sendTaking: "Take over and send",
  hint: "It goes to the terminal while that shows nothing, and is kept nowhere: not here, not by the server, not in its log.",
  sent: "Sent.", notAsked: "It was not sent: the terminal no longer asks for it.",
  unknown: "The server did not answer: whether it arrived is not known. It is forgotten here; look at the terminal.",
};
