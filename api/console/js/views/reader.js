/** A document beside the page: its text as it is cited, with the cited words highlighted and in view. */

import { call, download } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { bytes } from "../format.js";
import { t } from "../i18n.js";
import { blocks, locate, toUtf16 } from "../text.js";
import { badge, button, dialog, guarded, place, problem, spinner } from "../ui.js";

/**
 * @param {{document_id: string, document_name?: string, version?: number, page?: number, heading_path?: string[],
 *     quote?: Object, passage?: Object}} target a citation, a source or a hit; without both quote and passage the
 *     document opens at its top
 */
export function openReader(target) {
  const box = dialog(foreign(target.document_name || t("reader.title")), { kind: "drawer" });
  load(box, target);
}

async function load(box, target) {
  replace(box.body, spinner());
  try {
    const path = `/v1/documents/${encodeURIComponent(target.document_id)}`;
    const [document_, { content, same }] = await Promise.all([call(path), contentOf(path, target.version)]);
    replace(box.heading, foreign(document_.name));
    show(box, target, document_, content, same);
  } catch (error) {
    const words = error.status === 404 ? h("p", { class: "callout" }, t("reader.notReady")) : null;
    replace(box.body, words ?? problem(error, { retry: () => load(box, target) }), words ? problem(error) : null);
  }
}

/** The wanted version's text, or today's when that one is gone. */
async function contentOf(path, version) {
  if (version) {
    try {
      return { content: await call(`${path}/content`, { query: { version } }), same: true };
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
  const content = await call(`${path}/content`);
  return { content, same: !version || content.version === version };
}

function show(box, target, document_, content, same) {
  const wants = Boolean(target.quote || target.passage);
  const found = wants ? locate(content.text, target, same) : { quote: null, passage: null };
  const edges = toUtf16(content.text, content.outline.flatMap((o) => [o.start, o.end]));
  const headings = content.outline.map((o, n) => ({ level: o.level || 1, start: edges[2 * n], end: edges[2 * n + 1] }));
  const text = h(
    "div",
    { class: "reader-text", lang: content.lang === "und" ? null : content.lang, tabindex: "0", role: "document", "aria-label": document_.name },
    blocks(content.text, headings).map((block) => drawBlock(content.text, block, found)),
  );
  const source = () => download(`/v1/documents/${encodeURIComponent(document_.id)}/source`, document_.name, { version: content.version });
  replace(
    box.body,
    h(
      "div",
      { class: "reader-head" },
      h(
        "p",
        { class: "facts" },
        badge(document_.status),
        document_.title && document_.title !== document_.name ? foreign(document_.title) : null,
        h("span", {}, bytes(document_.size_bytes)),
        document_.pages ? h("span", {}, t("documents.pages", { n: document_.pages })) : null,
        h("span", {}, t("place.version", { n: content.version })),
      ),
      wants ? where(target, found, same) : null,
      h(
        "div",
        { class: "actions" },
        found.quote || found.passage ? button(t("reader.jump"), () => jump(text), { kind: "small" }) : null,
        button(t("reader.download"), (event) => guarded(event, source), { kind: "small" }),
      ),
    ),
    text,
  );
  jump(text);
}

function where(target, found, same) {
  let words = target.quote ? t("reader.cited") : t("reader.citedPassage");
  const hit = found.quote || found.passage;
  if (!same) words = hit ? t("reader.moved") : t("reader.lost");
  return h(
    "div",
    { class: `callout ${same ? "" : "warn"}` },
    h("p", { class: "callout-title" }, t("reader.quote"), target.marker ? ` [${target.marker}]` : ""),
    h("p", { class: "facts" }, place({ ...target, version: 0 }, { withName: false })),
    h("p", { class: "small" }, words),
  );
}

function jump(text) {
  const mark = text.querySelector("mark") ?? text.querySelector(".passage");
  mark?.scrollIntoView({ block: "center" });
}

/** One block, cut at the edges of the passage and the quote. */
function drawBlock(text, block, { quote, passage }) {
  const edges = [block.start, block.end, quote?.start, quote?.end, passage?.start, passage?.end]
    .filter((n) => n !== undefined && n >= block.start && n <= block.end)
    .sort((a, b) => a - b);
  const pieces = [];
  for (let n = 1; n < edges.length; n += 1) {
    const [start, end] = [edges[n - 1], edges[n]];
    if (start === end) continue;
    const words = text.slice(start, end);
    const holds = (span) => span && span.start <= start && end <= span.end;
    if (holds(quote)) pieces.push(h("mark", {}, words));
    else if (holds(passage)) pieces.push(h("span", { class: "passage" }, words));
    else pieces.push(words);
  }
  const tag = block.level ? `h${Math.min(6, block.level + 2)}` : "p";
  return h(tag, { class: block.level ? "reader-heading" : "reader-block" }, pieces);
}
