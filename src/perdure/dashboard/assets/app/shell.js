// @ts-check
// The frame of every page: the bar, the strip when the connection is lost, the gate when there is no session.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { DialogHost } from "./dialog.js";
import { clockSeconds, roughly } from "./format.js";
import { Icon } from "./icons.js";
import { Button, Code, Empty, Panel, html } from "./parts.js";
import { PAGES, place } from "./router.js";
import { gateSay, pageSay, partsSay, product, shellSay } from "./say/common.js";
import { announcement, clock, clockSkew, connection, hasEnded, openQuestions, place as storePlace, session, subject } from "./store.js";
import { caughtUp } from "./stream.js";

const NAVIGATION = /** @type {[string, string, string][]} */ ([["now", "/", "now"], ["tasks", "/tasks", "tasks"], ["inbox", "/inbox", "inbox"], ["operate", "/operate", "operate"]]);

export function Shell() {
  const here = place.value;
  return html`<a class="skip" href="#main">${shellSay.skip}</a>
    <${TopBar} page=${here.page} />
    <${Strip} />
    <main class="page" id="main" tabindex="-1">${session.value ? html`<${Page} />` : html`<${Gate} />`}</main>
    <${DialogHost} />
    <div class="visually-hidden" role="status" aria-live="polite">${announcement}</div>`;
}

/** @param {{page: string}} props */
function TopBar({ page }) {
  const who = session.value;
  return html`<header class="bar">
    <a class="brand" href="/"><${Mark} />${product}</a>
    ${who && html`<nav class="nav" aria-label=${shellSay.navigation}>${NAVIGATION.map(([name, href, icon]) => html`<a key=${name} href=${href}
        aria-current=${page === name || (name === "tasks" && page === "task") ? "page" : undefined}><${Icon} name=${icon} /><span>${pageSay[/** @type {"now"} */ (name)]}</span>${name === "inbox" && html`<${Count} />`}</a>`)}</nav>
    <${Search} />
    <span class="where" title=${storePlace}>${shortPlace(storePlace)}${storePlace && " · "}${who.namespace}</span>
    <${Light} />`}
    <${Theme} />
  </header>`;
}

const Mark = () => html`<svg class="mark" viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="3.4" stroke-linecap="round" aria-hidden="true"><path d="M2 10h6.2" /><path d="M12.6 10H18" /></svg>`;

/** The end of a path, where paths differ, without the name that every store has. @param {string} path */
const shortPlace = (path) => { const place = path.replace(/\/perdure\.db$/, ""); return place.length > 34 ? `…${place.slice(-33)}` : place; };

function Count() {
  const count = openQuestions.value;
  if (!count) return null;
  return html`<span class="count" aria-label=${shellSay.inboxCount(count)}>${count > 999 ? "999+" : count}</span>`;
}

/** Jump to a task by its id; the full search is loaded when it is first used. */
function Search() {
  const open = () => import("./search.js").then((search) => search.openSearch());
  return html`<button type="button" class="find" onClick=${open} aria-label=${shellSay.search} aria-keyshortcuts="/ Control+K"><${Icon} name="search" /><span class="find-text">${shellSay.search}</span><kbd>/</kbd></button>`;
}

function Light() {
  const { state } = connection.value;
  const word = shellSay[/** @type {"live"} */ (state)] ?? state;
  return html`<span class=${`light ${state}`}><i></i><span>${word}</span></span>`;
}

const theme = signal(/** @type {string|null} */ (null));
try { theme.value = localStorage.getItem("perdure.theme"); } catch { /* as the system */ }

function Theme() {
  const current = theme.value === "light" || theme.value === "dark" ? theme.value : "auto";
  const turn = () => {
    const next = { auto: "light", light: "dark", dark: "auto" }[current] ?? "auto";
    if (next === "auto") { delete document.documentElement.dataset.theme; theme.value = null; } else { document.documentElement.dataset.theme = next; theme.value = next; }
    try { if (next === "auto") localStorage.removeItem("perdure.theme"); else localStorage.setItem("perdure.theme", next); } catch { /* not kept */ }
  };
  return html`<button type="button" class="icon-btn theme" title=${shellSay.theme[/** @type {"auto"} */ (current)]} aria-label=${shellSay.theme[/** @type {"auto"} */ (current)]} onClick=${turn}><${Icon} name="theme" /></button>`;
}

function Strip() {
  const { state, since, next } = connection.value;
  const [told, setTold] = useState(/** @type {string|null} */ (null));
  useEffect(() => {
    if (state !== "live" && state !== "polling") return;
    const timer = setTimeout(() => { const missed = caughtUp(); if (missed !== null) setTold(shellSay.caughtUp(missed)); }, 800);
    return () => clearTimeout(timer);
  }, [state]);
  useEffect(() => { if (told) { const timer = setTimeout(() => setTold(null), 6000); return () => clearTimeout(timer); } }, [told]);
  if (state === "lost") {
    clock.value; // counts down
    const wait = next - Date.now();
    return html`<div class="strip bad" role="status">${shellSay.strip(clockSeconds(since), wait > 0 ? roughly(wait + 999) : roughly(0))}</div>`;
  }
  if (told) return html`<div class="strip ok" role="status">${told}</div>`;
  if (Math.abs(clockSkew()) > 60_000) return html`<div class="strip off">${shellSay.skewed(roughly(Math.abs(clockSkew())))}</div>`;
  return null;
}

/** A module, asked for again when the network has failed. @param {() => Promise<{default: any}>} ask */
async function load(ask) {
  for (let tries = 1; ; tries++) {
    try { return await ask(); } catch (error) { if (tries === 3) throw error; }
    await new Promise((go) => { setTimeout(go, 300 * tries); });
  }
}

/** The page of this address, loaded when it is first shown. */
function Page() {
  const here = place.value;
  const [loaded, setLoaded] = useState(/** @type {Record<string, any>} */ ({}));
  const [isOutdated, setOutdated] = useState(false);
  useEffect(() => {
    if (loaded[here.page] || !PAGES[here.page]) return;
    load(PAGES[here.page]).then((module) => setLoaded((all) => ({ ...all, [here.page]: module.default })), (error) => { if (!(error instanceof TypeError)) throw error; setOutdated(true); });
  }, [here.page]);
  if (isOutdated) return html`<${Empty} title=${partsSay.outdatedTitle}><p>${partsSay.outdated}</p><${Button} main onClick=${() => location.reload()}>${partsSay.reload}<//><//>`;
  if (here.page === "nowhere") return html`<${Empty} title=${partsSay.nowhereTitle}><p><a class="link" href="/">${partsSay.nowhere}</a></p><//>`;
  const Found = loaded[here.page];
  return Found ? html`<${Found} key=${here.page === "task" ? here.parts[0] : here.page} place=${here} />` : null;
}

/** What a browser without a session sees. */
function Gate() {
  return html`<div class="gate"><${Panel} title=${hasEnded.value ? gateSay.endedTitle : gateSay.noneTitle} id="gate"><div class="body">
    <p>${hasEnded.value ? gateSay.ended : gateSay.none}</p><p><${Code} copy=${gateSay.command}>${gateSay.command}<//></p><p class="meta">${gateSay.after}</p></div><//></div>`;
}

/** The name of the tab: the inbox first, then what is looked at. */
export function title() {
  const count = openQuestions.value;
  const here = place.value;
  const name = here.page === "task" ? here.parts[0] : pageSay[/** @type {"now"} */ (here.page)];
  return `${count ? `(${count}) ` : ""}${subject.value ?? name} · ${product}`;
}
