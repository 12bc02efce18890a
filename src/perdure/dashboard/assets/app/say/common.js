// @ts-check
// Texts of the frame around every page, and of the parts that pages share.

import { number } from "../format.js";

/** @param {number} count @param {string} one @param {string} [many] */
export const some = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export const product = "perdure";
export const pageSay = { now: "Now", tasks: "Tasks", inbox: "Inbox", operate: "Operate", task: "Task", nowhere: "Not found" };

/** @type {Record<string, string>} */
export const situationSay = {
  working: "working", queued: "queued", starting: "starting", you: "waits for you", waiting: "waits", blocked: "blocked",
  stuck: "stuck", stopped: "stopped", stalled: "stalled", completed: "completed", failed: "failed",
  cancelled: "cancelled", cancelling: "cancelling", uncertain: "uncertain", idle: "idle",
};

export const shellSay = {
  skip: "Skip to the page",
  navigation: "Pages",
  search: "Search or jump to…",
  theme: { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" },
  live: "live",
  polling: "asked every 5 s",
  opening: "connecting",
  hidden: "not watching",
  lost: "not live",
  over: "ended",
  /** @param {string} since @param {string} next */
  strip: (since, next) => `Not live since ${since}. Trying again in ${next}.`,
  /** @param {number} count */
  caughtUp: (count) => (count ? `Caught up: ${some(count, "change")}.` : "Caught up: nothing has changed."),
  /** @param {string} apart */
  skewed: (apart) => `The clock of this machine is ${apart} apart from the server's; times here follow the server's.`,
  inboxCount: (/** @type {number} */ count) => some(count, "open question"),
};

export const connectionSay = { lost: "The connection to the server is lost.", back: "The connection to the server is back." };

export const gateSay = {
  endedTitle: "This session has ended",
  noneTitle: "Open perdure by a link",
  ended: "Nothing of the store is shown any more. A new link begins a new session:",
  none: "This page shows a store only to a browser that has opened a link. Make one where the server runs:",
  command: "perdure link",
  after: "The link works once, within 10 minutes.",
};

export const partsSay = {
  copy: "Copy", copied: "Copied", kept: "Kept:", todo: "Do:", loading: "Loading", progress: "Progress",
  noAnswer: "The server does not answer.",
  notLive: "Not possible while the connection is lost",
  failed: (/** @type {number} */ status) => `The server refused this (${status}).`,
  nowhereTitle: "There is no page at this address",
  nowhere: "Go to Now",
  outdatedTitle: "A newer perdure is served",
  outdated: "This page is from before the upgrade.",
  reload: "Load it again",
  absent: "This server does not tell this yet.",
};

export const dialogSay = { close: "Close", cancel: "Do nothing" };
