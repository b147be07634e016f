/** A document beside the page: its text as it is cited, its passages, and the place in the original they came from. */

import { call, download } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { bytes } from "../format.js";
import { t } from "../i18n.js";
import { blocks, locate, points, toUtf16 } from "../text.js";
import { badge, button, dialog, guarded, place, problem, spinner } from "../ui.js";
import { hasPages, pageView } from "./reader-page.js";
import { passageList } from "./reader-passages.js";
import { placeWords } from "./reader-place.js";

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
    show(box, target, { path, document_, content, same });
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

function show(box, target, opened) {
  const { document_, content, path } = opened;
  const source = () => download(`${path}/source`, document_.name, { version: content.version });
  const callout = h("div", { class: "reader-callout" });
  const tools = h("div", { class: "actions" });
  const stage = h("div", { class: "reader-stage" });
  const views = ["text", "passages", ...(hasPages(document_) ? ["page"] : [])];
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": t("reader.views") });
  replace(
    box.body,
    h("div", { class: "reader-head" }, facts(document_, content), callout, h("div", { class: "reader-bar" }, tabs, tools)),
    stage,
  );
  const pages = hasPages(document_) ? pageView(path, document_, content.version) : null;
  const passages = passageList(path, content, (chosen) => choose(chosen, pages ? "page" : "text"));
  let present = { view: "", chosen: null, found: {}, text: null };

  function choose(chosen, view) {
    const wants = Boolean(chosen.quote || chosen.passage);
    const same = chosen === target ? opened.same : true;
    const found = wants ? locate(content.text, chosen, same) : { quote: null, passage: null };
    const spots = places(path, content, found);
    present = { ...present, chosen, found, text: textOf(document_, content, found) };
    replace(callout, wants ? where(chosen, found, same, spots) : null);
    pages?.mark(spots, chosen.page);
    open(view);
  }

  function open(view) {
    present.view = view;
    replace(tabs, views.map((name) => button(t(`reader.view.${name}`), () => open(name), { kind: "small tab", "aria-pressed": String(name === view), "data-key": `view-${name}` })));
    const hit = present.found.quote || present.found.passage;
    replace(
      tools,
      hit ? button(t(present.chosen.ordinal === undefined ? "reader.jump" : "reader.jumpPassage"), () => (view === "passages" ? open("text") : jump(stage)), { kind: "small" }) : null,
      button(t("reader.download"), (event) => guarded(event, source), { kind: "small" }),
    );
    replace(stage, { text: present.text, passages: passages.node, page: pages?.node }[view]);
    if (view === "passages") passages.open(present.found.passage && points(content.text, present.found.passage));
    if (view === "page") pages.open();
    if (view === "text") jump(stage);
  }

  choose(target, pages && (target.quote || target.passage) ? "page" : "text");
}

function facts(document_, content) {
  return h(
    "p",
    { class: "facts" },
    badge(document_.status),
    document_.title && document_.title !== document_.name ? foreign(document_.title) : null,
    h("span", {}, bytes(document_.size_bytes)),
    document_.pages ? h("span", {}, t("documents.pages", { n: document_.pages })) : null,
    h("span", {}, t("place.version", { n: content.version })),
  );
}

/** Places of the quote and of its passage in the original; empty where the version has no map. */
async function places(path, content, { quote, passage }) {
  const of = async (span) => {
    if (!span) return [];
    const { start, end } = points(content.text, span);
    try {
      return (await call(`${path}/places`, { query: { start, end, version: content.version } })).items;
    } catch (error) {
      if (error.status === 404) return [];
      throw error;
    }
  };
  const [quoted, around] = await Promise.all([of(quote), of(passage)]);
  return { quote: quoted, passage: around };
}

function where(chosen, found, same, spots) {
  const listed = chosen.ordinal !== undefined;
  let words = chosen.quote ? t("reader.cited") : t(listed ? "reader.shown" : "reader.citedPassage");
  const hit = found.quote || found.passage;
  if (!same) words = hit ? t("reader.moved") : t("reader.lost");
  const exact = h("span", { class: "source-place" });
  spots.then(
    ({ quote, passage }) => replace(exact, placeWords(quote.length ? quote : passage)),
    () => {},
  );
  return h(
    "div",
    { class: `callout ${same ? "" : "warn"}` },
    h("p", { class: "callout-title" }, listed ? t("reader.passage", { n: chosen.ordinal + 1 }) : t("reader.quote"), chosen.marker ? ` [${chosen.marker}]` : ""),
    h("p", { class: "facts" }, chosen.heading_path?.length ? place({ heading_path: chosen.heading_path }, { withName: false }) : null, exact),
    h("p", { class: "small" }, words),
  );
}

function jump(stage) {
  const mark = stage.querySelector("mark, .place-box.of-quote") ?? stage.querySelector(".passage, .place-box");
  mark?.scrollIntoView({ block: "center" });
}

function textOf(document_, content, found) {
  const edges = toUtf16(content.text, content.outline.flatMap((o) => [o.start, o.end]));
  const headings = content.outline.map((o, n) => ({ level: o.level || 1, start: edges[2 * n], end: edges[2 * n + 1] }));
  return h(
    "div",
    { class: "reader-text", lang: content.lang === "und" ? null : content.lang, tabindex: "0", role: "document", "aria-label": document_.name },
    blocks(content.text, headings).map((block) => drawBlock(content.text, block, found)),
  );
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
