// @ts-check
// What was typed for a question, kept for this tab: a reload, a failed request or a live update loses nothing.

/** @typedef {{value?: any, comment?: string}} Draft */

/** @param {string} id @returns {Draft} */
export function readDraft(id) {
  try { return JSON.parse(sessionStorage.getItem(`perdure.draft.${id}`) ?? "{}"); } catch { return {}; }
}

/** A value that may hold a password is not kept. @param {{id: string, schema?: any}} pause @param {Draft|null} draft */
export function keepDraft({ id, schema }, draft) {
  if (draft !== null && JSON.stringify(schema ?? null).includes('"format":"password"')) draft = { comment: draft.comment };
  try {
    if (draft === null) sessionStorage.removeItem(`perdure.draft.${id}`);
    else sessionStorage.setItem(`perdure.draft.${id}`, JSON.stringify(draft));
  } catch { /* this browser keeps nothing */ }
}
