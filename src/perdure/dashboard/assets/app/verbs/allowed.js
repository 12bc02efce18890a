// @ts-check
// Which verbs a task's status allows. The server decides again when one is used.

const FINISHED = ["completed", "failed", "cancelled"];

/** @typedef {{verb: string, when: (status: string, isFunction: boolean, hasPast: boolean) => boolean, danger?: boolean, inMenu?: boolean}} VerbRule */

/** The verbs of the buttons and of the menu. @type {VerbRule[]} */
const VERBS = [
  { verb: "pause", when: (status) => status === "running" || status === "pending" },
  { verb: "resume", when: (status) => status === "paused" || status === "failed" },
  { verb: "fork", when: () => true },
  { verb: "rollback", when: (status, _, hasPast) => hasPast && status !== "pending" },
  { verb: "cancel", when: (status) => !FINISHED.includes(status), danger: true },
  { verb: "archive", when: (status) => FINISHED.includes(status), inMenu: true },
  { verb: "signal", when: (status, isFunction) => isFunction && !FINISHED.includes(status), inMenu: true },
  { verb: "instruct", when: (status) => !FINISHED.includes(status), inMenu: true },
  { verb: "take", when: (status) => status === "running", inMenu: true },
  { verb: "stop", when: (status) => !FINISHED.includes(status), inMenu: true },
  { verb: "delete", when: (status) => FINISHED.includes(status), inMenu: true, danger: true },
];

/** Whether there is a checkpoint to go back to. @param {{latest?: any, damaged?: string[]}} record */
export const hasPast = (record) => Boolean(record.latest) || (record.damaged?.length ?? 0) > 0;

/** @param {string} status @param {boolean} isFunction @param {boolean} hasCheckpoint @returns {VerbRule[]} */
export const verbsFor = (status, isFunction, hasCheckpoint) => VERBS.filter((each) => each.when(status, isFunction, hasCheckpoint));
