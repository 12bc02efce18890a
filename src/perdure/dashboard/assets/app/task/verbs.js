// @ts-check
// Which dialog a verb of a task has. Each is loaded when it is first opened.

import { openDialog } from "../dialog.js";
import { go } from "../router.js";

const plain = () => import("../verbs/plain.js");
/** @type {Record<string, () => Promise<{default: any}>>} */
const DIALOGS = {
  cancel: () => import("../verbs/cancel.js"),
  rollback: () => import("../verbs/rollback.js"),
  fork: () => import("../verbs/fork.js"),
  resume: () => import("../verbs/resume.js"),
  pause: plain, archive: plain, signal: plain, instruct: plain, take: plain, stop: plain, delete: plain,
};

/** Open the dialog of a verb, or the question that it decides.
 * @param {string} verb @param {{task: any, call?: {function: string|null}|null, way?: any, at?: string|null, place?: string, editsState?: boolean, onDone: () => void}} about */
export async function openVerb(verb, about) {
  const asked = /^\/v1\/inbox\/([^/]+)\//.exec(about.way?.href ?? "");
  if (asked) return go(`/inbox/${asked[1]}`);
  const { default: content } = await DIALOGS[verb]();
  openDialog(content, { verb, ...about, at: about.at ?? about.way?.body?.at ?? (about.way?.body?.to !== undefined ? String(about.way.body.to) : undefined) });
}
