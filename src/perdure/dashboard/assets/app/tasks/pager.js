// @ts-check
// The rows of a list that has no end: pages are read as the view comes near them, and changes wait until they may move rows.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, Problem, query } from "../api.js";
import { keep, keepAll, taskSignal } from "../store.js";
import { follow, reread } from "../stream.js";

/** @typedef {import("../store.js").Task} Task */
/** @typedef {{uids: string[], next: string|null, isWhole: boolean, isLoading: boolean, problem: Problem|null, waiting: number}} Rows */

const PAGE = 100;
const NOTHING = /** @type {Rows} */ ({ uids: [], next: null, isWhole: false, isLoading: true, problem: null, waiting: 0 });

/** @param {Record<string, any>} filter of /v1/tasks @param {boolean} isHeld rows may not move now */
export function usePager(filter, isHeld) {
  const key = query(filter);
  const [rows, setRows] = useState(NOTHING);
  const state = useRef({ key, rows, isHeld, changed: new Set(/** @type {string[]} */ ([])) });
  state.current.key = key;
  state.current.rows = rows;
  state.current.isHeld = isHeld;

  const read = useCallback(async (/** @type {string|null} */ cursor) => {
    const asked = state.current.key;
    try {
      const told = await get(`/v1/tasks${query({ ...filterOf(asked), limit: PAGE, cursor })}`);
      if (state.current.key !== asked) return;
      keepAll(told.items);
      const uids = told.items.map((/** @type {Task} */ task) => task.uid);
      if (cursor === null) state.current.changed.clear();
      setRows((before) => ({
        ...merge(before, uids, cursor, told.next), isLoading: false, problem: null, waiting: cursor === null ? 0 : before.waiting,
      }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (state.current.key === asked) setRows((before) => ({ ...before, isLoading: false, problem: error }));
    }
  }, []);

  useEffect(() => { setRows(NOTHING); state.current.changed.clear(); void read(null); }, [key]);
  useEffect(() => { if (reread.value) void read(null); }, [reread.value]);
  useEffect(() => follow(["tasks"], (event, data) => {
    if (event === "task") {
      const isKnown = taskSignal(data.task.uid) && state.current.rows.uids.includes(data.task.uid);
      keep(data.task);
      if (!isKnown || filterOf(state.current.key).sort === "changed") state.current.changed.add(data.task.uid);
    } else if (event === "gone") state.current.changed.add(data.uid);
    else return;
    const { changed } = state.current;
    if (changed.size) setRows((before) => (before.waiting === changed.size ? before : { ...before, waiting: changed.size }));
  }), []);
  useEffect(() => {
    if (!rows.waiting || isHeld) return;
    const timer = setTimeout(() => void read(null), 500);
    return () => clearTimeout(timer);
  }, [rows.waiting, isHeld]);

  const more = useCallback(() => {
    const { rows: now } = state.current;
    if (now.isLoading || now.isWhole || !now.next) return;
    setRows((before) => ({ ...before, isLoading: true }));
    void read(now.next);
  }, []);
  return { ...rows, more, apply: useCallback(() => void read(null), []) };
}

/** @param {string} text */
const filterOf = (text) => {
  const found = /** @type {Record<string, any>} */ ({});
  for (const [name, value] of new URLSearchParams(text)) (found[name] ??= []).push(value);
  if (found.sort) found.sort = found.sort[0];
  return found;
};

/** The first page again: what it holds comes first, and what is known beyond it stays. If more has come than a page
 * holds, the list begins anew, as what lies between is not known.
 * @param {Rows} before @param {string[]} uids @param {string|null} cursor @param {string|null} next */
function merge(before, uids, cursor, next) {
  const fresh = new Set(uids);
  if (cursor !== null) {
    const known = new Set(before.uids);
    return { ...before, uids: [...before.uids, ...uids.filter((uid) => !known.has(uid))], next, isWhole: next === null };
  }
  if (next === null || !before.uids.length) return { ...before, uids, next, isWhole: next === null };
  const rest = before.uids.filter((uid) => !fresh.has(uid));
  const isNext = before.uids.includes(uids[uids.length - 1]);
  return before.uids.length <= uids.length || !isNext ? { ...before, uids, next, isWhole: false } : { ...before, uids: [...uids, ...rest] };
}
