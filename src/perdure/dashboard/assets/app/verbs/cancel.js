// @ts-check
// Cancel a task: what would be undone first, then the verb.

import { useMemo, useState } from "preact/hooks";
import { newOnce, send } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { Act, Button, html } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { verbSay } from "../say/verbs.js";
import { announcement } from "../store.js";
import { AtStake, useRehearsal } from "./at_stake.js";

/** @param {{task: import("../task/tabs.js").TaskRef, onDone: () => void}} props */
export default function Cancel({ task, onDone }) {
  const [undo, setUndo] = useState(true);
  const once = useMemo(newOnce, [undo]);
  const path = `${task.path}/cancel`;
  const { plan, problem } = useRehearsal(path, { undo });
  const act = async () => { await send("POST", path, { undo }, { once }); announcement.value = verbSay.done.cancel; closeDialog(); onDone(); };
  const canUndo = !undo || (plan?.undone.length ?? 0) > 0;
  return html`<${Dialog} title=${verbSay.titles.cancel(task.id)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger disabled=${!plan || problem !== null} do=${act}>${verbSay.buttons.cancel}<//>`}>
    <p>${verbSay.about.cancel}</p>
    ${canUndo && html`<label class="check"><input type="checkbox" checked=${undo} onChange=${(/** @type {any} */ e) => setUndo(e.currentTarget.checked)} />${verbSay.undoEffects}</label>`}
    <${AtStake} plan=${plan} problem=${problem} /><//>`;
}
