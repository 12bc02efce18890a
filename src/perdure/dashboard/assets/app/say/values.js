// @ts-check
// Texts of values: trees of JSON, long texts, what the server has left out.

import { number } from "../format.js";
import { some } from "./common.js";

export const valueSay = {
  label: "Value",
  find: "Find in it…",
  findLabel: "Find in this value",
  /** @param {number} at @param {number} of */
  found: (at, of) => (of ? `${number(at)} of ${number(of)}` : "not found"),
  foundMost: (/** @type {number} */ most) => `more than ${number(most)}`,
  notSearched: "Parts that are not loaded yet are not searched.",
  next: "Next", previous: "Previous",
  keys: (/** @type {number} */ n) => some(n, "key"),
  items: (/** @type {number} */ n) => some(n, "item"),
  characters: (/** @type {number} */ n) => some(n, "character"),
  moreKeys: (/** @type {number} */ n) => `show ${some(n, "more key", "more keys")}`,
  moreItems: (/** @type {number} */ n) => `show ${some(n, "more item", "more items")}`,
  showAll: (/** @type {number} */ n) => `show all ${number(n)}`,
  loading: "loading…",
  openAll: "Open all", foldAll: "Fold all",
  root: "the whole value",
  copyPath: "Copy the path", copyValue: "Copy value", copyPython: "Copy as Python", copied: "Copied",
  wrap: "Wrap lines", closeText: "Close the text",
  /** @param {number} shown @param {number} all */
  textCut: (shown, all) => `The first ${number(shown)} of ${number(all)} characters.`,
};
