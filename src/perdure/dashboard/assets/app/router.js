// @ts-check
// From the address to a page and back. Everything that can be looked at has an address; back and reload show the same.

import { signal } from "@preact/signals";

/** @typedef {{page: string, parts: string[], query: URLSearchParams, path: string}} Place */

/** The pages, each loaded when it is first shown. @type {Record<string, () => Promise<{default: any}>>} */
export const PAGES = {
  now: () => import("./pages/now.js"),
  tasks: () => import("./pages/tasks.js"),
  task: () => import("./pages/task.js"),
  inbox: () => import("./pages/inbox.js"),
  operate: () => import("./pages/operate.js"),
};

/** @returns {Place} */
function read() {
  const parts = location.pathname.split("/").slice(1).map(decode);
  const query = new URLSearchParams(location.search);
  const path = location.pathname;
  if (parts[0] === "" || parts[0] === "now") return { page: "now", parts: [], query, path };
  if (parts[0] === "tasks" && parts[1]) return { page: "task", parts: parts.slice(1), query, path };
  return { page: parts[0] in PAGES ? parts[0] : "nowhere", parts: parts.slice(1), query, path };
}

/** @param {string} text */
function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export const place = signal(read());

/** Show an address of ours. @param {string} href @param {{replace?: boolean, keepScroll?: boolean}} [how] */
export function go(href, how = {}) {
  if (how.replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  const before = place.peek();
  place.value = read();
  if (!how.keepScroll && before.path !== place.peek().path) scrollTo(0, 0);
}

/** Change parts of the query; null removes one. @param {Record<string, string|string[]|null>} changes @param {{push?: boolean}} [how] */
export function setQuery(changes, how = {}) {
  const query = new URLSearchParams(place.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each !== null && each !== "") query.append(name, each);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace: !how.push, keepScroll: true });
}

/** @param {MouseEvent} event */
function follow(event) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || /^\/(v1|link|openapi|metrics)/.test(link.pathname)) return;
  event.preventDefault();
  if (link.href !== location.href) go(link.pathname + link.search + link.hash);
}

export function startRouter() {
  addEventListener("popstate", () => { place.value = read(); });
  document.addEventListener("click", follow);
}
