// @ts-check
// One dialog over the page: a native <dialog>, so that the focus is trapped and given back. Esc closes it, unless
// something was typed.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "./parts.js";
import { Icon } from "./icons.js";
import { dialogSay } from "./say/common.js";

/** @type {import("@preact/signals").Signal<{content: any, props: any}|null>} */
export const current = signal(null);

/** Open a dialog. `content` is a component that draws a `Dialog`. @param {any} content @param {any} [props] */
export function openDialog(content, props = {}) {
  current.value = { content, props };
}
export const closeDialog = () => { current.value = null; };

export function DialogHost() {
  const open = current.value;
  return open ? html`<${open.content} ...${open.props} />` : null;
}

/** @param {{title: any, children?: any, footer?: any, wide?: boolean, class?: string, isDirty?: () => boolean, onClose?: () => void}} props */
export function Dialog({ title, children, footer, class: name = "", isDirty, onClose }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const close = () => { onClose?.(); closeDialog(); };
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => { if (before instanceof HTMLElement) before.focus(); };
  }, []);
  const cancel = (/** @type {Event} */ event) => { event.preventDefault(); if (!isDirty?.()) close(); };
  const outside = (/** @type {MouseEvent} */ event) => { if (event.target === ref.current && !isDirty?.()) close(); };
  return html`<dialog ref=${ref} class=${name} aria-labelledby="dialog-title" onCancel=${cancel} onMouseDown=${outside}>
    <header><h2 id="dialog-title">${title}</h2><button type="button" class="icon-btn" aria-label=${dialogSay.close} onClick=${close}><${Icon} name="close" /></button></header>
    <div class="body">${children}</div>${footer && html`<footer>${footer}</footer>`}</dialog>`;
}
