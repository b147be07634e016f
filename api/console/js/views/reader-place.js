/** Places in the original, in words: pages, lines, rows, paragraphs and the parts of a container. */

import { foreign, h } from "../dom.js";
import { t } from "../i18n.js";

const MOST = 3;

/** @param {Array<Object>} places as the doors give them, in order */
export function placeWords(places) {
  const shown = merged(places);
  const more = shown.length > MOST ? h("span", {}, t("place.more", { n: shown.length - MOST })) : null;
  return [...shown.slice(0, MOST).map((p) => h("span", {}, parts(p))), more];
}

/** One entry per page and part: a span over several places of one part reads as one range. */
function merged(places) {
  const found = new Map();
  for (const p of places) {
    const key = `${p.member ?? ""}\n${p.page ?? ""}`;
    const known = found.get(key);
    if (!known) found.set(key, { ...p });
    else Object.assign(known, { last_line: p.last_line ?? known.last_line, last_paragraph: p.last_paragraph ?? known.last_paragraph });
  }
  return [...found.values()];
}

function parts({ member, page, line, last_line: lastLine, paragraph, last_paragraph: lastParagraph }) {
  const words = [];
  if (member) words.push(foreign(member));
  if (page) words.push(t("place.page", { n: page }));
  if (line) words.push(range("line", line, lastLine));
  else if (paragraph !== null && paragraph !== undefined) words.push(range("paragraph", paragraph + 1, (lastParagraph ?? paragraph) + 1));
  return words.flatMap((w, n) => (n ? [" · ", w] : [w]));
}

function range(unit, from, to) {
  return to && to > from ? t(`place.${unit}s`, { from, to }) : t(`place.${unit}`, { n: from });
}
