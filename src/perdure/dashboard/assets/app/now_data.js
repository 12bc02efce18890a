// @ts-check
// What the page Now shows, and from when on it tells what happened: since this browser was here last.

import { signal } from "@preact/signals";
import { get, query } from "./api.js";
import { clock, keepAll } from "./store.js";

/** @typedef {import("./store.js").Task} Task */
/** @typedef {Api.Now} Now */

/** When this browser was here before this session; null: never. */
export const since = signal(begin());

/** @param {AbortSignal} signal @returns {Promise<Now>} */
export async function loadNow(signal) {
  const told = await get(`/v1/now${query({ since: since.peek() })}`, signal);
  keepAll([...told.working, ...told.next, ...told.recent]);
  return told;
}

export function markSeen() {
  since.value = new Date(clock.peek()).toISOString();
  try { sessionStorage.setItem("perdure.since", since.value); } catch { /* it is not kept */ }
}

function begin() {
  try {
    const last = sessionStorage.getItem("perdure.since") ?? localStorage.getItem("perdure.seen");
    sessionStorage.setItem("perdure.since", last ?? "");
    const note = () => { if (!document.hidden) localStorage.setItem("perdure.seen", new Date().toISOString()); };
    setInterval(note, 60_000);
    note();
    return last || null;
  } catch { return null; }
}
