/** Search test: what each route recalls and how the ranking comes about. Nothing is generated. */

import { call } from "../client.js";
import { h, replace } from "../dom.js";
import { milliseconds, score } from "../format.js";
import { t } from "../i18n.js";
import { collection, session } from "../session.js";
import { badge, field, place, problem, select, spinner } from "../ui.js";
import { openReader } from "./reader.js";

const state = { question: "", topK: "10", result: null, collectionId: "" };

export function reset() {
  Object.assign(state, { question: "", topK: "10", result: null });
}

export function mount(root) {
  if (state.collectionId !== session.collectionId) Object.assign(state, { result: null, collectionId: session.collectionId });
  const question = h("input", { type: "search", value: state.question, maxlength: 4000, required: true, oninput: () => (state.question = question.value) });
  const results = h("section", { "aria-live": "polite" });
  const submit = h("button", { class: "button primary", type: "submit" }, t("search.submit"));
  async function run(event) {
    event?.preventDefault();
    submit.disabled = true;
    replace(results, spinner());
    try {
      const body = { question: question.value, collection: collection().id, top_k: Number(state.topK), explain: true };
      state.result = await call("/v1/search", { method: "POST", body });
      replace(results, draw(state.result));
    } catch (error) {
      replace(results, problem(error, { retry: run }));
    } finally {
      submit.disabled = false;
    }
  }
  replace(
    root,
    h("h1", {}, t("search.title")),
    h("p", { class: "muted" }, t("search.intro")),
    h(
      "form",
      { class: "card row", onsubmit: run, role: "search" },
      field(t("ask.question"), question),
      field(t("search.topK"), select(["5", "10", "20", "50"].map((n) => [n, n]), state.topK, (n) => (state.topK = n))),
      submit,
    ),
    results,
  );
  if (state.result) replace(results, draw(state.result));
}

function draw(found) {
  const spent = Object.values(found.timings_ms).reduce((a, b) => a + b, 0);
  return [
    h("p", { class: "facts" }, h("span", {}, t("search.total", { n: found.total, ms: milliseconds(spent) })), reports(found.routes)),
    found.hits.length ? h("ol", { class: "hits" }, found.hits.map(drawHit)) : h("p", { class: "empty" }, t("search.none")),
    dropped(found.dropped),
  ];
}

function routeName(route) {
  return t(`route.${route}`, {}, route);
}

function reports(routes) {
  return Object.entries(routes ?? {}).map(([route, report]) => {
    const late = { failed: t("search.routeFailed"), late: t("search.routeLate") }[report.state];
    const words = late ?? t("search.routeReport", { hits: report.hits ?? 0, ms: milliseconds(report.ms) });
    return h("span", { class: "chip", title: report.error ?? null }, h("b", {}, routeName(route)), " ", words, late ? badge("failed", "!") : null);
  });
}

function drawHit(hit) {
  const target = { ...hit, passage: { start: hit.start, end: hit.end, text: hit.text } };
  return h(
    "li",
    { class: "card hit" },
    h(
      "div",
      { class: "hit-head" },
      h("span", { class: "rank", "aria-label": `${t("search.rank")} ${hit.rank}` }, hit.rank),
      h("button", { type: "button", class: "link", onclick: () => openReader(target) }, place(hit)),
    ),
    h("p", { class: "snippet", lang: hit.lang === "und" ? null : hit.lang }, hit.text),
    h(
      "p",
      { class: "facts" },
      chip(t("search.score"), score(hit.score)),
      chip(t("search.fused"), score(hit.fused_score)),
      chip(t("search.rerank"), hit.rerank_score === null ? t("search.notReranked") : score(hit.rerank_score)),
      hit.cross_score === null ? null : chip(t("search.cross"), score(hit.cross_score)),
      hit.routes.map((r) => chip(routeName(r.route), `#${r.rank} · ${score(r.score)}`, "route")),
      hit.collapsed ? h("span", {}, t("ask.source.collapsed", { n: hit.collapsed })) : null,
    ),
  );
}

function chip(name, value, kind = "") {
  return h("span", { class: `chip ${kind}` }, h("b", {}, name), " ", value);
}

function dropped(entries) {
  if (!entries?.length) return null;
  const words = (entry) => Object.entries(entry).map(([k, v]) => `${k}: ${typeof v === "object" ? JSON.stringify(v) : v}`).join(" · ");
  return h("details", { class: "card" }, h("summary", {}, t("search.dropped", { n: entries.length })), h("ul", {}, entries.map((e) => h("li", { class: "small" }, words(e)))));
}
