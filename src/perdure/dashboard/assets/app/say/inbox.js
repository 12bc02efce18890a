// @ts-check
// Texts of questions, and of deciding them.

import { number } from "../format.js";
import { some } from "./common.js";

export const inboxSay = {
  title: "Inbox",
  open: (/** @type {number} */ n) => `${number(n)} open, soonest first`,
  filters: { all: "All", approval: "Approvals", input: "Questions", effect: "Effects", credential: "Credentials" },
  filtersLabel: "Which questions",
  listLabel: "Open questions",
  kinds: /** @type {Record<string, string>} */ ({ approval: "approval", input: "question", effect: "uncertain effect", credential: "credential" }),
  none: "Nothing waits for you.",
  noneOfKind: "None of this kind waits for you.",
  waitByThemselves: (/** @type {number} */ n) => `${some(n, "task waits", "tasks wait")} by ${n === 1 ? "itself" : "themselves"}.`,
  choose: "Choose a question.",
  asked: "asked ", askedFull: "Asked ",
  by: (/** @type {string} */ who) => ` by ${who}`, where: " in ",
  back: "All questions",
  gone: "This question is not there any more.",
  noText: "The text of this question takes the scope data:read.",
  unreadable: "Not readable:",
  needsScope: "To decide this takes the scope inbox:decide.",
  approve: "Approve", reject: "Reject", edit: "Edit, then approve…", editing: "Approve as edited", answer: "Answer", answerOpen: "Answer…",
  happened: "It happened…", happenedSend: "It happened", retry: "It did not: try again", fail: "Let it fail", back2: "Back",
  comment: "Comment", commentHint: "kept in the audit", addComment: "Add a comment",
  editable: "What is approved", result: "What it returned", resultHint: "as JSON; empty: nothing",
  value: "Answer", valueHint: "as JSON; empty: nothing",
  sendKey: "Ctrl ↵",
  asJson: "As JSON", asForm: "As a form",
  credentialTried: "Put it where the task looks for it, then let the task try again.",
  tryAgain: "Try again",
  /** @param {string} call */
  didIt: (call) => `Did ${call} happen?`,
  facts: { why: "not known, as", key: "look it up by" },
  notWaitedFor: "Its function has gone on without the answer; only the record is open.",
  evidence: "Where it was cut off",
  context: "What it knows so far", details: "What was asked with it", state: "State of the task",
  kept: "What you had written:",
  /** @param {string} how @param {string} who */
  decided: (how, who) => `${({ approved: "Approved", rejected: "Rejected", answered: "Answered", settled: "Settled", expired: "Expired", withdrawn: "Withdrawn", ended: "Ended" })[how] ?? how}${who ? ` by ${who}` : ""}`,
  you: "you",
  noUndo: "This cannot be undone: the task has gone on.",
};
