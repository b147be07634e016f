/** A small line chart in SVG: a few series of shares over time, and a floor that they should stay above. */

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 640; // unless the caller says how wide the place is, so that words keep their size
const HEIGHT = 180;
const EDGE = { left: 44, right: 10, top: 10, bottom: 24 };

function node(tag, attributes, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** The lowest value that is drawn: a step below all that is shown, so that no line lies on the edge. */
export function lowest(values) {
  const least = Math.min(...values);
  return Math.max(0, Math.floor(least * 20 - 0.2) / 20);
}

/** Where a point is drawn: time from left to right, share from `low` at the bottom to 1 at the top. */
export function place({ from, until, low, width = WIDTH }, at, share) {
  const x = EDGE.left + ((at - from) / Math.max(1, until - from)) * (width - EDGE.left - EDGE.right);
  const y = EDGE.top + ((1 - share) / Math.max(1e-9, 1 - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  return [Math.round(x * 10) / 10, Math.round(y * 10) / 10];
}

/**
 * @param {Array<{name: string, kind: string, points: Array<{at: number, share: number, words: string}>}>} series
 *     `at` in milliseconds, ascending; `words` are shown for a point that is pointed at
 * @param {{width?: number, from: number, until: number, floor: number, label: string, floorLabel: string, percent: (share: number) => string,
 *     time: (at: number) => string}} options
 */
export function lineChart(series, { width = WIDTH, from, until, floor, label, floorLabel, percent, time }) {
  const low = lowest([floor, ...series.flatMap((s) => s.points.map((p) => p.share))]);
  const scale = { from, until, low, width };
  const [left, right] = [EDGE.left, width - EDGE.right];
  const grid = [1, (1 + low) / 2, low].map((share) => {
    const [, y] = place(scale, from, share);
    return node("g", {}, node("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }), text(left - 6, y + 4, percent(share), "end"));
  });
  const [, floorY] = place(scale, from, floor);
  return node(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
    ...grid,
    node("line", { class: "floor", x1: left, x2: right, y1: floorY, y2: floorY }),
    text(right, floorY - 5, floorLabel, "end"),
    text(left, HEIGHT - 6, time(from), "start"),
    text(right, HEIGHT - 6, time(until), "end"),
    ...series.map((s) => drawn(s, scale)),
  );
}

function text(x, y, words, anchor) {
  return node("text", { x, y, "text-anchor": anchor }, words);
}

function drawn({ name, kind, points }, scale) {
  const places = points.map((p) => place(scale, p.at, p.share));
  const dots = points.map((p, n) => node("circle", { cx: places[n][0], cy: places[n][1], r: 3 }, node("title", {}, p.words)));
  const line = places.length > 1 ? [node("polyline", { points: places.map((p) => p.join(",")).join(" ") })] : [];
  return node("g", { class: `series ${kind}`, "data-series": name }, ...line, ...dots);
}
