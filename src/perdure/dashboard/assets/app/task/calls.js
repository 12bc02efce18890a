// @ts-check
// The texts of calls in view: read in blocks of a hundred as rows come into sight, and kept.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, Problem } from "../api.js";
import { may } from "../store.js";

const BLOCK = 100;

/** @param {{path: string}} task @param {import("./outline.js").Outline|null} outline @param {number} first @param {number} last indexes in view */
export function useCalls(task, outline, first, last) {
  const state = useRef({ line: 0, calls: /** @type {Map<number, any>} */ (new Map()), asked: /** @type {Map<number, number>} */ (new Map()) });
  const [, redraw] = useState(0);
  if (outline && state.current.line !== outline.line) state.current = { line: outline.line, calls: new Map(), asked: new Map() };
  useEffect(() => {
    if (!outline || !outline.n || !may("data:read")) return;
    const { calls, asked } = state.current;
    const timer = setTimeout(() => {
      for (let block = Math.floor(Math.max(0, first) / BLOCK); block <= Math.floor(Math.min(outline.n - 1, last) / BLOCK); block++) {
        // A block that was not full when it was read, or held an open call, is read again when the journal has grown.
        if (asked.get(block) === outline.upto || (asked.has(block) && isSettled(outline, block, calls))) continue;
        asked.set(block, outline.upto);
        void load(block);
      }
    }, 40);
    return () => clearTimeout(timer);
    async function load(/** @type {number} */ block) {
      if (!outline) return;
      const begin = block * BLOCK;
      const after = begin === 0 ? 0 : outline.position[begin - 1];
      try {
        const told = await get(`${task.path}/journal?line=${outline.line}&after=${after}&limit=${BLOCK}`);
        const open = [];
        for (let i = begin; i < outline.n; i++) if (outline.position[i] === 0) open.push(i);
        const byPosition = new Map();
        for (let i = begin; i < Math.min(outline.n, begin + BLOCK); i++) byPosition.set(outline.position[i], i);
        for (const call of told.items) {
          const at = call.position ? byPosition.get(call.position) : open.shift();
          if (at !== undefined) calls.set(at, call);
        }
        redraw((n) => n + 1);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        asked.delete(block);
      }
    }
  }, [outline, first, last, task.path]);
  return state.current.calls;
}

/** @param {import("./outline.js").Outline} o @param {number} block @param {Map<number, any>} calls */
function isSettled(o, block, calls) {
  for (let i = block * BLOCK; i < Math.min(o.n, (block + 1) * BLOCK); i++) {
    const call = calls.get(i);
    if (!call || call.state === "open" || call.state === "pausing" || call.position !== o.position[i]) return false;
  }
  return true;
}
