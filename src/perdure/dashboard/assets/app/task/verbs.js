// @ts-check
// The dialogs of a task's verbs: what would happen first, then the verb itself.

import { useState } from "preact/hooks";
import { newOnce, Problem, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Button, html, Trouble } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { taskSay } from "../say/task.js";

/** Open the dialog of a verb. @param {string} verb @param {{task: any, record: any, summary?: any, way?: any, onDone: () => void}} about */
export function openVerb(verb, about) {
  openDialog(PlainVerb, { verb, ...about });
}

/** A verb that needs nothing but a yes. @param {{verb: string, task: import("./tabs.js").TaskRef, onDone: () => void}} props */
function PlainVerb({ verb, task, onDone }) {
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [once] = useState(newOnce);
  const label = taskSay.verbs[/** @type {"pause"} */ (verb)].replace("…", "");
  const act = async () => {
    try { await send("POST", `${task.path}/${verb}`, verb === "pause" ? { message: "" } : {}, { once }); closeDialog(); onDone(); }
    catch (error) { if (!(error instanceof Problem)) throw error; setProblem(error); }
  };
  return html`<${Dialog} title=${`${label} ${task.id}`} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Button} main onClick=${act}>${label}<//>`}>
    ${problem && html`<${Trouble} problem=${problem} />`}<//>`;
}
