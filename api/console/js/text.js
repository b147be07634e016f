/**
 * Offsets and blocks of a document's text. Spans on the wire count Unicode code points; JavaScript strings
 * count UTF-16 units, so every span is translated before it cuts.
 */

const BLOCK_CHARS = 2000;

/**
 * UTF-16 positions of code-point offsets.
 * @param {string} text
 * @param {number[]} offsets in any order; one past the end of the text maps to its end
 * @returns {number[]} in the order given
 */
export function toUtf16(text, offsets) {
  if (!/[\ud800-\udbff]/.test(text)) return offsets.map((n) => Math.min(n, text.length));
  const order = offsets.map((offset, at) => ({ offset, at })).sort((a, b) => a.offset - b.offset);
  const found = new Array(offsets.length);
  let unit = 0;
  let point = 0;
  for (const { offset, at } of order) {
    while (point < offset && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      point += 1;
    }
    found[at] = unit;
  }
  return found;
}

/** A span `{start, end}` of code points as a span of UTF-16 units. */
export function span16(text, { start, end }) {
  const [from, to] = toUtf16(text, [start, end]);
  return { start: from, end: to };
}

/** A span of UTF-16 units as a span of code points, as the doors count. */
export function points(text, { start, end }) {
  const before = count(text, 0, start);
  return { start: before, end: before + count(text, start, end) };
}

function count(text, from, to) {
  let pairs = 0;
  for (let at = from; at < to; at += 1) if (text.codePointAt(at) > 0xffff) pairs += 1;
  return to - from - pairs;
}

/**
 * Where in `text` the wanted words stand, as spans of UTF-16 units.
 * @param {string} text
 * @param {{quote?: {start: number, end: number, text: string}, passage?: {start?: number, end?: number, text: string}}} wanted
 *     a passage without offsets is looked for by its text
 * @param {boolean} sameVersion whether the offsets belong to this text
 * @returns {{quote: ?{start: number, end: number}, passage: ?{start: number, end: number}}}
 */
export function locate(text, { quote, passage }, sameVersion) {
  let exact = quote && sameVersion ? span16(text, quote) : null;
  if (exact && text.slice(exact.start, exact.end) !== quote.text) exact = null;
  if (!exact && quote) exact = occurrence(text, quote.text);
  let around = null;
  if (passage?.end > 0 && sameVersion) around = span16(text, passage);
  else if (passage?.text) around = occurrence(text, passage.text, exact);
  return { quote: exact, passage: around };
}

/** The occurrence of `words` that holds `inside`, else the first one, else null. */
function occurrence(text, words, inside = null) {
  let first = null;
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
    const span = { start: at, end: at + words.length };
    first ??= span;
    if (!inside || (span.start <= inside.start && inside.end <= span.end)) return span;
  }
  return first;
}

/**
 * Cut a text into blocks at line breaks, headings apart, so that a long document can be laid out lazily.
 * @param {string} text
 * @param {Array<{start: number, end: number, level: number}>} headings spans of UTF-16 units, in order
 * @returns {Array<{start: number, end: number, level: number}>} level 0 is body text
 */
export function blocks(text, headings) {
  const found = [];
  let at = 0;
  for (const heading of headings) {
    if (heading.start < at || heading.end <= heading.start || heading.end > text.length) continue;
    body(text, at, heading.start, found);
    found.push(heading);
    at = heading.end;
  }
  body(text, at, text.length, found);
  return found;
}

function body(text, start, end, found) {
  while (start < end) {
    const stop = Math.min(end, paragraphEnd(text, start));
    const words = text.slice(start, stop);
    const lead = words.length - words.trimStart().length;
    if (lead < words.length) found.push({ start: start + lead, end: start + words.trimEnd().length, level: 0 });
    start = stop;
  }
}

/** The next empty line; in a longer run of text the first line break past the limit, or the limit. */
function paragraphEnd(text, start) {
  const ahead = text.slice(start, start + 2 * BLOCK_CHARS); // a search of the whole rest would be quadratic
  const gap = ahead.indexOf("\n\n");
  if (gap >= 0) return start + gap + 2;
  if (ahead.length < 2 * BLOCK_CHARS) return text.length;
  const line = ahead.indexOf("\n", BLOCK_CHARS);
  if (line >= 0) return start + line + 1;
  const limit = start + BLOCK_CHARS;
  return /[\udc00-\udfff]/.test(text[limit]) ? limit + 1 : limit; // never inside one character
}
