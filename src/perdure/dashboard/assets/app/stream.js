// @ts-check
// One stream of changes for the whole tab. Pages name topics; the stream carries their union, and only while the tab
// is shown. When nothing has come for 40 s the line is dead. A server without a stream is asked again every 5 s.

import { signal } from "@preact/signals";
import { ask, get, Problem } from "./api.js";
import { announcement, connection, counts, forget, setServerTime } from "./store.js";
import { connectionSay } from "./say/common.js";

/** @typedef {(event: string, data: any) => void} Handler */

/** Goes up when what is shown may be old and has to be read again. */
export const reread = signal(0);

/** @type {Map<string, Set<Handler>>} */
const wanted = new Map();
const SILENCE = 40_000, HIDDEN = 20_000, POLL = 5_000;
let current = /** @type {AbortController|null} */ (null);
let lastId = "", tries = 0, timer = 0, watchdog = 0, isStarted = false, missed = 0, wasLost = false, recount = 0, settled = 0;

/** Hear of changes; returns how to stop. @param {string[]} topics @param {Handler} handler */
export function follow(topics, handler) {
  for (const topic of topics) {
    const all = wanted.get(topic) ?? new Set();
    wanted.set(topic, all.add(handler));
  }
  schedule(60);
  return () => {
    for (const topic of topics) {
      const all = wanted.get(topic);
      all?.delete(handler);
      if (all && !all.size) wanted.delete(topic);
    }
    schedule(60);
  };
}

let carried = "";
// Topics that the server has; pages may name others, which then tell nothing.
const SERVED = /^(counts|inbox|operate|tasks|(task|journal|units):.+)$/;
const union = () => [...wanted.keys()].filter((topic) => SERVED.test(topic)).sort().slice(0, 16).join(",");

/** @param {number} ms */
function schedule(ms) {
  if (!isStarted) return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (!document.hidden && (current === null || union() !== carried)) void open();
  }, ms);
}

export function startStream() {
  isStarted = true;
  let leaving = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(letGo, HIDDEN);
    else if (current === null) { reread.value++; schedule(0); }
  });
  setInterval(() => document.hidden && current === null && void pollCounts(), 60_000);
  schedule(0);
}

function letGo() {
  current?.abort();
  current = null;
  if (connection.value.state !== "over") set("hidden");
}

/** @param {import("./store.js").Connection["state"]} state @param {number} [next] */
function set(state, next = 0) {
  const before = connection.value;
  connection.value = { state, since: before.state === state ? before.since : Date.now(), next };
  if (before.state === state) return;
  if (state === "lost") { wasLost = true; missed = 0; announcement.value = connectionSay.lost; }
  else if (wasLost && (state === "live" || state === "polling")) announcement.value = connectionSay.back;
}

async function open() {
  current?.abort();
  const own = (current = new AbortController());
  const topics = (carried = union());
  if (!topics) { current = null; return; }
  try {
    const path = `/v1/stream?topics=${encodeURIComponent(topics)}${lastId ? `&after=${encodeURIComponent(lastId)}` : ""}`;
    const answer = await ask("GET", path, { signal: own.signal, headers: { Accept: "text/event-stream" } });
    set("live");
    tries = 0;
    await read(/** @type {ReadableStream<Uint8Array>} */ (answer.body), own);
    if (current === own) throw new Problem(0, {});
  } catch (error) {
    if (current !== own) return;
    current = null;
    retry(error);
  }
}

/** @param {unknown} error */
function retry(error) {
  clearTimeout(watchdog);
  if (error instanceof Problem && error.status === 401) return end();
  if (error instanceof Problem && error.isAbsent) return poll();
  const wait = error instanceof Problem && error.wait ? error.wait * 1000 : Math.min(30_000, 1000 * 2 ** tries++);
  const jittered = wait * (0.8 + Math.random() * 0.4);
  set("lost", Date.now() + jittered);
  schedule(jittered);
}

function poll() {
  set("polling");
  reread.value++;
  void pollCounts();
  clearTimeout(timer);
  timer = setTimeout(() => { if (!document.hidden) void open(); }, POLL);
}

export async function pollCounts() {
  try {
    counts.value = await get("/v1/counts?parts=situation,inbox");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) end();
  }
}

function end() {
  current?.abort();
  current = null;
  set("over");
  forget();
}

/** @param {ReadableStream<Uint8Array>} body @param {AbortController} own */
async function read(body, own) {
  const reader = body.pipeThrough(/** @type {ReadableWritablePair<string, Uint8Array>} */ (new TextDecoderStream())).getReader();
  let rest = "";
  for (;;) {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => { if (current === own) { current = null; own.abort(); retry(new Problem(0, {})); } }, SILENCE);
    const { value, done } = await reader.read();
    if (done || current !== own) return;
    const blocks = (rest + value).replace(/\r\n?/g, "\n").split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) take(block);
  }
}

/** @param {string} block */
function take(block) {
  let event = "message", data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith(": ")) setServerTime(line.slice(2));
    else if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("id: ")) lastId = line.slice(4);
    else if (line.startsWith("data: ")) data += (data ? "\n" : "") + line.slice(6);
  }
  if (!data) return;
  let value;
  try { value = JSON.parse(data); } catch { return; }
  dispatch(event, value);
}

/** @param {string} event @param {any} value */
function dispatch(event, value) {
  if (event === "end") return end();
  if (event === "bye") return;
  if (event === "hello") { setServerTime(value.at); if (wasLost && !value.resumed) reread.value++; return; }
  if (event === "reset") { lastId = ""; reread.value++; return; }
  if (event === "counts") {
    counts.value = { ...counts.peek(), ...value.counts };
    recount ||= setTimeout(() => { recount = 0; void pollCounts(); }, 400); // situations and questions are not in it
    clearTimeout(settled); // and once more: the server counts situations as of a second ago
    settled = setTimeout(pollCounts, 1500);
  }
  if (wasLost) missed++;
  const called = new Set();
  for (const all of wanted.values()) for (const handler of all) if (!called.has(handler)) { called.add(handler); handler(event, value); }
}

/** How many changes came since the line was back; told once. */
export function caughtUp() {
  if (!wasLost) return null;
  wasLost = false;
  return missed;
}
