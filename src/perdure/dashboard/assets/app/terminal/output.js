// @ts-check
// The output of a unit, byte by byte from an offset on. A broken line continues at the count of bytes that came, so that
// nothing is missed or shown twice; what the server no longer keeps is told as a gap.

import { ask, Problem } from "../api.js";

/** How much of a long output is read before it is followed. */
export const TAIL = 2_000_000;
const SOON = 250, LATEST = 10_000;

/** @typedef {"reading"|"live"|"lost"|"ended"|"gone"} Line */
/** @typedef {{data: (bytes: Uint8Array) => Promise<void>, gap: (bytes: number) => void, another: () => void, line: (line: Line, more?: any) => void}} Sink */

/** Follow an output until it ends or `signal` is aborted. `bytes` of the answer says how many have come in all.
 * @param {string} path the unit's address in the API @param {number} from @param {Sink} sink @param {AbortSignal} signal */
export async function followOutput(path, from, sink, signal) {
  let at = from, unit = "", tries = 0;
  while (!signal.aborted) {
    try {
      const answer = await ask("GET", `${path}/output?from=${at}&follow=1`, { signal });
      const came = answer.headers.get("Perdure-Unit") ?? "";
      if (unit && came !== unit) {
        // Another unit has its name now, and offsets of its own.
        at = 0; unit = "";
        await answer.body?.cancel();
        sink.another();
        continue;
      }
      unit = came;
      const gap = Number(answer.headers.get("Perdure-Gap"));
      at = Number(answer.headers.get("Perdure-Offset") ?? at);
      if (gap > 0) sink.gap(gap);
      const ended = answer.headers.get("Perdure-Ended");
      if (answer.status === 204 && ended !== null) return sink.line("ended", ended === "None" ? null : Number(ended));
      sink.line("live");
      tries = 0;
      const reader = answer.body?.getReader();
      while (reader) {
        const { value, done } = await reader.read();
        if (done) break;
        at += value.length;
        await sink.data(value);
      }
      if (answer.status === 204) await rest(SOON, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [401, 403, 404, 410].includes(error.status)) return sink.line("gone", error);
      if (error instanceof Problem && error.status === 416) { at = error.values.end ?? 0; continue; }
      const wait = error instanceof Problem && error.wait ? error.wait * 1000 : Math.min(LATEST, SOON * 2 ** tries++);
      sink.line("lost", Date.now() + wait);
      await rest(wait, signal);
    }
  }
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function rest(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
