// @ts-check
// The list of keys.

import { Dialog, openDialog } from "./dialog.js";
import { html } from "./parts.js";
import { helpSay } from "./say/search.js";
import { singleKeys } from "./store.js";

export const openHelp = () => openDialog(Help);

function Help() {
  return html`<${Dialog} title=${helpSay.title} class="help">
    <div class="help-groups">${helpSay.groups.map(([title, keys]) => html`<section key=${title}><h3>${title}</h3><dl class="pairs">${keys.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl></section>`)}</div>
    <label class="check"><input type="checkbox" checked=${singleKeys.value} onChange=${(/** @type {any} */ e) => { singleKeys.value = e.currentTarget.checked; }} />${helpSay.off} <span class="hint">${helpSay.offHint}</span></label><//>`;
}
