// @ts-check
// Begins the dashboard: who is here, the router, the stream, the frame, the keys.
//
// How pages, parts, texts and API calls are added is told in perdure/dashboard/__init__.py.

import { effect } from "@preact/signals";
import { h, render } from "preact";
import { get, introduce, listener, Problem } from "./api.js";
import { startKeys } from "./keys.js";
import { place, startRouter } from "./router.js";
import { Shell, title } from "./shell.js";
import { counts, forget, openQuestions, session, subject, version } from "./store.js";
import { follow, pollCounts, startStream } from "./stream.js";

introduce(version);
startRouter();

/** A link in a mail or a chat comes without the strict cookie: our own request has it. */
async function findSession() {
  try {
    session.value = await get("/v1/session");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}

listener.answered = (status) => { if (status === 401 && session.peek()) forget(); };

effect(() => { document.title = title(); });
effect(() => {
  const icon = /** @type {HTMLLinkElement|null} */ (document.querySelector('link[rel="icon"]'));
  const name = openQuestions.value ? "mark-dot.svg" : "mark.svg";
  if (icon) icon.href = new URL(`../css/${name}`, import.meta.url).href;
});
effect(() => { place.value.path; subject.value = null; });

let isStarted = false;
effect(() => {
  if (!session.value || isStarted) return;
  isStarted = true;
  void pollCounts();
  follow(["counts", "inbox"], (event, data) => {
    if (event === "inbox" && data.count && counts.peek()) counts.value = { ...counts.peek(), inbox: data.count };
  });
  startStream();
});

if (!session.value) await findSession();
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(h(Shell, {}), root);
startKeys();
