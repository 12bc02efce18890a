// @ts-check
// From time to pixels, piece by piece: stretches of work are drawn to scale, idle time between them is folded. Pure.

/** @typedef {{from: number, to: number, x0: number, x1: number, isFold: boolean}} Piece */
/** @typedef {{pieces: Piece[], x: (at: number) => number, at: (x: number) => number, worked: number, whole: number}} Scale */

const FOLD = 30, NEAR = 1500;

/** @param {[number, number][]} busy intervals of activity @param {number} from @param {number} to @param {number} width @param {boolean} folds
 * @returns {Scale} */
export function makeScale(busy, from, to, width, folds) {
  const whole = Math.max(1, to - from);
  const stretches = folds ? join(busy, from, to) : [];
  const worked = sum(stretches.length ? stretches : [[from, to]]);
  if (!folds || !stretches.length) return linear(from, from + whole, width, worked);
  const gaps = /** @type {number[]} */ ([]);
  let at = from;
  for (const [begin, end] of stretches) { gaps.push(begin - at); at = end; }
  gaps.push(to - at);
  const count = gaps.filter((gap) => gap > 0).length;
  const foldWidth = count ? Math.min(FOLD, (width * 0.25) / count) : 0;
  const room = Math.max(1, width - count * foldWidth);
  const least = Math.min(14, (room * 0.5) / stretches.length);
  const rest = room - least * stretches.length;
  const pieces = /** @type {Piece[]} */ ([]);
  let x = 0;
  at = from;
  stretches.forEach(([begin, end], i) => {
    if (gaps[i] > 0) { pieces.push({ from: at, to: begin, x0: x, x1: x + foldWidth, isFold: true }); x += foldWidth; }
    const wide = least + (rest * (end - begin)) / worked;
    pieces.push({ from: begin, to: end, x0: x, x1: x + wide, isFold: false });
    x += wide;
    at = end;
  });
  if (gaps[gaps.length - 1] > 0) pieces.push({ from: at, to, x0: x, x1: x + foldWidth, isFold: true });
  return make(pieces, worked, whole);
}

/** @param {number} from @param {number} to @param {number} width @param {number} worked */
const linear = (from, to, width, worked) => make([{ from, to, x0: 0, x1: width, isFold: false }], worked, to - from);

/** @param {Piece[]} pieces @param {number} worked @param {number} whole @returns {Scale} */
function make(pieces, worked, whole) {
  const find = (/** @type {(piece: Piece) => boolean} */ isBefore) => {
    let low = 0, high = pieces.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (isBefore(pieces[middle])) low = middle + 1; else high = middle; }
    return pieces[low];
  };
  return {
    pieces, worked, whole,
    x: (at) => { const p = find((piece) => piece.to < at); return p.x0 + (p.x1 - p.x0) * clamp((at - p.from) / Math.max(1e-9, p.to - p.from)); },
    at: (x) => { const p = find((piece) => piece.x1 < x); return p.from + (p.to - p.from) * clamp((x - p.x0) / Math.max(1e-9, p.x1 - p.x0)); },
  };
}

/** @param {number} value */
const clamp = (value) => Math.max(0, Math.min(1, value));

/** @param {[number, number][]} intervals */
const sum = (intervals) => Math.max(1, intervals.reduce((total, [begin, end]) => total + end - begin, 0));

/** Intervals inside a window, joined where they are close: nearer than 1.5 s, or 2 % of all activity.
 * @param {[number, number][]} busy @param {number} from @param {number} to @returns {[number, number][]} */
function join(busy, from, to) {
  const inside = /** @type {[number, number][]} */ (busy.map(([begin, end]) => [Math.max(from, begin), Math.min(to, Math.max(end, begin + 1))])).filter(([begin, end]) => end > begin || (begin >= from && begin <= to));
  inside.sort((a, b) => a[0] - b[0]);
  const merge = (/** @type {[number, number][]} */ all, /** @type {number} */ near) => {
    const found = /** @type {[number, number][]} */ ([]);
    for (const [begin, end] of all) {
      const last = found[found.length - 1];
      if (last && begin - last[1] <= near) last[1] = Math.max(last[1], end);
      else found.push([begin, end]);
    }
    return found;
  };
  const bare = merge(inside, 0);
  const near = Math.max(NEAR, sum(bare) * 0.02);
  const joined = merge(bare, near);
  if (joined.length && joined[0][0] - from <= near) joined[0][0] = from;
  if (joined.length && to - joined[joined.length - 1][1] <= near) joined[joined.length - 1][1] = to;
  return joined;
}

/** Labels of the axis that do not touch each other: folds first, as they say what was left out.
 * @param {Scale} scale @param {(ms: number) => string} length @param {number} width */
export function axisLabels(scale, length, width) {
  const taken = /** @type {[number, number][]} */ ([]);
  const labels = /** @type {{x: number, text: string, isFold: boolean}[]} */ ([]);
  const place = (/** @type {number} */ x, /** @type {string} */ text, /** @type {boolean} */ isFold) => {
    const half = text.length * 3.3 + 5;
    const at = Math.max(half, Math.min(width - half, x));
    if (taken.some(([begin, end]) => at - half < end && at + half > begin)) return;
    taken.push([at - half, at + half]);
    labels.push({ x: at, text, isFold });
  };
  for (const piece of scale.pieces) if (piece.isFold && piece.to - piece.from >= 1000) place((piece.x0 + piece.x1) / 2, `⋯ ${length(piece.to - piece.from)}`, true);
  for (const piece of scale.pieces) {
    if (piece.isFold) continue;
    const steps = Math.max(1, Math.floor((piece.x1 - piece.x0) / 130));
    for (let i = 0; i < steps; i++) {
      const x = piece.x0 + ((piece.x1 - piece.x0) * i) / steps;
      const text = `+${length(scale.at(x + 0.001))}`;
      if (!labels.some((label) => label.text === text)) place(x + 14, text, false);
    }
  }
  return labels;
}
