// @ts-check
// A JSON value as the lines of a tree: which are there, what each holds, what was left out. Pure.
//
// The server may leave parts of a large value out: `{"$cut": {kind, length, at}}` stands for a text, an object or a list;
// as the last item of a list, or beside other keys, it stands for the rest of them. `at` is where they are.

/** @typedef {(string|number)[]} Path */
/** @typedef {{kind: "text"|"object"|"list"|"keys"|"items", length: number, at: string, begin: string}} Cut */
/** @typedef {"object"|"list"|"text"|"number"|"word"|"cut"|"more"} Kind */
/** @typedef {{key: string, path: Path, depth: number, name: string|number|null, value: any, kind: Kind, count: number, isOpen: boolean, cut: Cut|null}} Line */

export const LONG = 300;
const FIRST_DEPTH = 3, FIRST_LINES = 60;

/** @param {Path} path */
export const keyOf = (path) => JSON.stringify(path);

/** @param {any} value @returns {value is Record<string, any>} */
const isTree = (value) => value !== null && typeof value === "object";

/** What the server left out here; null when this is an ordinary value. @param {any} value @returns {Cut|null} */
export function cutOf(value) {
  const told = isTree(value) && !Array.isArray(value) ? /** @type {any} */ (value).$cut : null;
  if (!isTree(told) || typeof told.length !== "number" || typeof told.at !== "string") return null;
  return { kind: told.kind ?? "text", length: told.length, at: /^\/v1\/tasks\//.test(told.at) ? told.at : "", begin: String(told.begin ?? "") };
}

/** @param {any} value @returns {Kind} */
export function kindOf(value) {
  if (Array.isArray(value)) return "list";
  if (isTree(value)) { const cut = cutOf(value); return cut && cut.kind !== "keys" ? "cut" : "object"; }
  return typeof value === "string" ? "text" : typeof value === "number" ? "number" : "word";
}

/** The children of a value, and what was left out after them.
 * @param {any} value @returns {{names: (string|number)[], rest: Cut|null, count: number}} */
export function childrenOf(value) {
  if (Array.isArray(value)) {
    const last = cutOf(value[value.length - 1]);
    const rest = last?.kind === "items" ? last : null;
    return { names: [...value.keys()].slice(0, rest ? -1 : undefined), rest, count: rest ? rest.length : value.length };
  }
  const cut = cutOf(value);
  const rest = cut?.kind === "keys" ? cut : null;
  const names = Object.keys(value).filter((name) => !(rest && name === "$cut"));
  return { names, rest, count: rest ? rest.length : names.length };
}

/** Which nodes are open at first: the outer levels, as long as they are few lines. @param {any} root */
export function openAtFirst(root) {
  const opened = new Set(/** @type {string[]} */ ([]));
  let level = /** @type {[Path, any][]} */ ([[[], root]]);
  let lines = 1;
  for (let depth = 0; depth < FIRST_DEPTH && level.length; depth++) {
    const next = /** @type {[Path, any][]} */ ([]);
    for (const [path, value] of level) {
      const kind = kindOf(value);
      if (kind !== "object" && kind !== "list") continue;
      const { names } = childrenOf(value);
      if (depth > 0 && lines + names.length > FIRST_LINES) continue;
      lines += names.length;
      opened.add(keyOf(path));
      for (const name of names) next.push([[...path, name], value[name]]);
    }
    level = next;
  }
  return opened;
}

/** The lines that are to be seen. `loaded` holds, by path, what came later.
 * @param {any} root @param {Set<string>} opened @param {Map<string, any>} loaded */
export function linesOf(root, opened, loaded) {
  const lines = /** @type {Line[]} */ ([]);
  const visit = (/** @type {any} */ given, /** @type {Path} */ path, /** @type {string|number|null} */ name) => {
    const key = keyOf(path), depth = path.length;
    const value = loaded.has(key) ? loaded.get(key) : given;
    const kind = kindOf(value);
    if (kind !== "object" && kind !== "list") {
      lines.push({ key, path, depth, name, value, kind, count: 0, isOpen: false, cut: kind === "cut" ? cutOf(value) : null });
      return;
    }
    const { names, rest, count } = childrenOf(value);
    const isOpen = opened.has(key);
    lines.push({ key, path, depth, name, value, kind, count, isOpen, cut: null });
    if (!isOpen) return;
    for (const each of names) visit(value[each], [...path, each], each);
    if (rest) lines.push({ key: `${key}+`, path, depth: depth + 1, name: null, value: null, kind: "more", count: rest.length - names.length, isOpen: false, cut: rest });
  };
  visit(root, [], null);
  return lines;
}

/** Every node that could be opened, up to a number. @param {any} root @param {Map<string, any>} loaded @param {number} most */
export function allNodes(root, loaded, most) {
  const found = new Set(/** @type {string[]} */ ([]));
  const queue = /** @type {[Path, any][]} */ ([[[], root]]);
  for (let at = 0; at < queue.length && found.size < most; at++) {
    const [path, given] = queue[at], key = keyOf(path);
    const value = loaded.has(key) ? loaded.get(key) : given;
    const kind = kindOf(value);
    if (kind !== "object" && kind !== "list") continue;
    found.add(key);
    for (const name of childrenOf(value).names) queue.push([[...path, name], value[name]]);
  }
  return found;
}

/** Paths whose key or value has the text in it, in the order of the lines.
 * @param {any} root @param {Map<string, any>} loaded @param {string} text @param {number} most */
export function findText(root, loaded, text, most) {
  const wanted = text.toLowerCase(), paths = /** @type {Path[]} */ ([]);
  let isWhole = true;
  const visit = (/** @type {any} */ given, /** @type {Path} */ path) => {
    if (paths.length >= most) return;
    const key = keyOf(path), value = loaded.has(key) ? loaded.get(key) : given;
    const kind = kindOf(value), name = path[path.length - 1];
    const isTreeNode = kind === "object" || kind === "list";
    const shown = isTreeNode ? "" : kind === "cut" ? /** @type {Cut} */ (cutOf(value)).begin : String(value);
    if ((typeof name === "string" && name.toLowerCase().includes(wanted)) || shown.toLowerCase().includes(wanted)) paths.push(path);
    if (kind === "cut") isWhole = false;
    if (!isTreeNode) return;
    const { names, rest } = childrenOf(value);
    if (rest) isWhole = false;
    for (const each of names) visit(value[each], [...path, each]);
  };
  if (wanted) visit(root, []);
  return { paths, isWhole };
}

/** The value at a path, as far as it is loaded. @param {any} root @param {Map<string, any>} loaded @param {Path} path */
export function valueAt(root, loaded, path) {
  let value = loaded.get("[]") ?? root;
  for (let at = 0; at < path.length && isTree(value); at++) {
    const key = keyOf(path.slice(0, at + 1));
    value = loaded.has(key) ? loaded.get(key) : /** @type {any} */ (value)[path[at]];
  }
  return value;
}

/** Whether something in it was left out. @param {any} value @returns {boolean} */
export function hasCut(value) {
  if (!isTree(value)) return false;
  return cutOf(value) !== null || Object.values(value).some(hasCut);
}

/** A path as a person writes it: files[3].name. @param {Path} path */
export function spellPath(path) {
  return path.map((part, at) => (typeof part === "number" ? `[${part}]` : /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(part) ? `${at ? "." : ""}${part}` : `[${JSON.stringify(part)}]`)).join("");
}

/** A value as Python writes it. @param {any} value @param {string} [pad] @returns {string} */
export function asPython(value, pad = "") {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${pad}    `;
  const parts = Array.isArray(value) ? value.map((each) => asPython(each, inner)) : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${asPython(each, inner)}`);
  const [first, last] = Array.isArray(value) ? "[]" : "{}";
  return parts.length ? `${first}\n${parts.map((part) => `${inner}${part},\n`).join("")}${pad}${last}` : first + last;
}
