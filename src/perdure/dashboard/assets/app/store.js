// @ts-check
// What the pages share: who is here, counts, the connection, the clock, and every task that was seen, by uid.
// An older version of a task never replaces a newer one: answers and the stream race.

import { batch, computed, effect, signal } from "@preact/signals";
import { time } from "./format.js";

/** @typedef {Api.Me} Session */
/** @typedef {Omit<Api.ShortSituation, "kind"> & {kind: string}} Standing */
/** @typedef {Omit<Api.ListedTask, "situation"|"pause"|"hidden"> & {situation?: Standing}} Task */

const boot = JSON.parse(document.getElementById("boot")?.textContent || "{}");
export const version = /** @type {string} */ (boot.version || "");
export const place = /** @type {string} */ (boot.place || "");
export const isReadOnly = Boolean(boot.read_only);

export const session = signal(/** @type {Session|null} */ (boot.session || null));
/** Why there is no session: it has ended, or there never was one. */
export const hasEnded = signal(false);
export const counts = signal(/** @type {any} */ (null));
export const openQuestions = computed(() => inboxTotal(counts.value));

/** @param {string} scope */
export const may = (scope) => Boolean(session.value?.scopes.includes(scope)) && (!isReadOnly || scope.endsWith(":read"));

/** How many open questions the counts tell of. @param {any} told */
function inboxTotal(told) {
  if (!told) return 0;
  if (told.inbox) return Object.values(told.inbox).reduce((/** @type {number} */ sum, each) => sum + Number(each), 0);
  return told.situation?.you ?? 0;
}

// ── the connection ──────────────────────────────────────────────────────────────────────────────
/** @typedef {{state: "opening"|"live"|"polling"|"lost"|"hidden"|"over", since: number, next: number}} Connection */
export const connection = signal(/** @type {Connection} */ ({ state: "opening", since: Date.now(), next: 0 }));
export const isLost = computed(() => connection.value.state === "lost");
/** Said aloud by screen readers: the inbox, the connection, one's own actions. */
export const announcement = signal("");

// ── the clock: one for all times on the page, corrected by the server's ─────────────────────────
let skew = boot.at ? time(boot.at) - Date.now() : 0;
export const clock = signal(Date.now() + skew);
/** @param {string} at a moment of the server, now */
export function setServerTime(at) {
  const apart = time(at) - Date.now();
  if (!Number.isNaN(apart) && Math.abs(apart - skew) > 2000) skew = apart;
  tick();
}
export const clockSkew = () => skew;
export function tick() {
  clock.value = Date.now() + (Math.abs(skew) > 2000 ? skew : 0);
}
setInterval(() => document.hidden || tick(), 1000);

// ── choices of the person, kept in the browser ──────────────────────────────────────────────────
/** @template T @param {string} name @param {T} otherwise */
export function kept(name, otherwise) {
  const key = `perdure.${name}`;
  let begin = otherwise;
  try {
    const text = localStorage.getItem(key);
    if (text !== null) begin = JSON.parse(text);
  } catch { /* nothing is kept here */ }
  const found = signal(begin);
  let isFirst = true;
  effect(() => {
    const value = found.value;
    if (isFirst) { isFirst = false; return; }
    try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* nothing is kept here */ }
  });
  return found;
}
/** What the page calls itself in the name of the tab; null: by its address. */
export const subject = signal(/** @type {string|null} */ (null));
export const absoluteTimes = kept("absolute", false);
export const singleKeys = kept("keys", true);

// ── tasks ───────────────────────────────────────────────────────────────────────────────────────
/** @type {Map<string, import("@preact/signals").Signal<Task>>} */
const tasks = new Map();
const MOST = 5000;

/** Keep a task as it was told, unless a newer one is known; returns its signal. @param {Task} told */
export function keep(told) {
  const known = tasks.get(told.uid);
  if (known) {
    if (told.updated_at >= known.value.updated_at) known.value = told;
    return known;
  }
  if (tasks.size >= MOST) tasks.delete(/** @type {string} */ (tasks.keys().next().value));
  const made = signal(told);
  tasks.set(told.uid, made);
  return made;
}

/** @param {Task[]} told */
export const keepAll = (told) => batch(() => told.map(keep));

/** @param {string} uid */
export const taskSignal = (uid) => tasks.get(uid);

/** Forget everything that came from the store: the session is over. */
export function forget() {
  batch(() => {
    tasks.clear();
    counts.value = null;
    session.value = null;
    hasEnded.value = true;
  });
}
