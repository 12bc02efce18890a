// @ts-check
// What was typed for a question, kept for this tab: a reload, a failed request or a live update loses nothing.

/** @typedef {{value?: any, comment?: string}} Draft */

/** @param {string} id @returns {Draft} */
export function readDraft(id) {
  try { return JSON.parse(sessionStorage.getItem(`perdure.draft.${id}`) ?? "{}"); } catch { return {}; }
}

/** @param {string} id @param {Draft|null} draft */
export function keepDraft(id, draft) {
  try {
    if (draft === null) sessionStorage.removeItem(`perdure.draft.${id}`);
    else sessionStorage.setItem(`perdure.draft.${id}`, JSON.stringify(draft));
  } catch { /* this browser keeps nothing */ }
}
