/** One answer: what state it is in, its claims with verdicts and citations, its sources, its figures. */

import { pieces, TERMINAL } from "../answer-state.js";
import { foreign, h } from "../dom.js";
import { ago, milliseconds, number, percent, score } from "../format.js";
import { known, t } from "../i18n.js";
import { badge, button, place } from "../ui.js";
import { openReader } from "./reader.js";

export function drawAnswer(answer, { again }) {
  const open = !TERMINAL.has(answer.status);
  const shown = pieces(answer);
  return h(
    "article",
    { class: "card answer", "data-status": answer.status },
    h("p", { class: "asked" }, foreign(answer.question)),
    understood(answer),
    open ? phase(answer) : outcome(answer),
    stale(answer),
    fallback(answer),
    (answer.notices || []).map((notice) => h("p", { class: "callout warn", "data-notice": notice.code }, foreign(notice.text))),
    shown.length ? h("ol", { class: "claims", "aria-label": t("ask.claims") }, shown.map((c) => drawClaim(c, answer))) : null,
    sources(answer),
    open ? null : details(answer),
    open ? null : h("div", { class: "actions" }, button(t("ask.again"), () => again(answer.question), { kind: "small", "data-key": "again" })),
  );
}

/** The question as it was searched for, where earlier turns made it whole. */
function understood(answer) {
  const asked = answer.stored?.trace?.asked;
  return asked ? h("p", { class: "small", "data-understood": asked.why }, t("ask.understood"), " ", foreign(asked.text)) : null;
}

function phase(answer) {
  const words = t(`ask.phase.${answer.phase || "writing"}`, { n: answer.sources.length });
  return h("p", { class: "loading", "aria-hidden": "true" }, h("span", { class: "spinner" }), words);
}

function outcome(answer) {
  if (answer.status === "answered") return null;
  const tone = answer.status === "failed" ? "bad" : answer.status === "cancelled" ? "" : "warn";
  return h(
    "div",
    { class: `callout ${tone}` },
    h("p", { class: "callout-title" }, t(`ask.state.${answer.status}`)),
    answer.status === "refused" && answer.text ? h("p", {}, foreign(answer.text)) : null,
    h("p", {}, t(`ask.${answer.status}.text`)),
    answer.error ? h("p", { class: "small" }, h("code", {}, answer.error.code), " ", foreign(answer.error.detail)) : null,
  );
}

function stale(answer) {
  const since = answer.stored?.stale_since;
  return since ? h("p", { class: "callout warn" }, t("ask.stale", { when: ago(since) })) : null;
}

function fallback(answer) {
  if (!answer.modeUsed || answer.modeUsed === answer.mode || !answer.mode) return null;
  const name = (mode) => t(`ask.mode.${mode}`, {}, mode).split(/[:：]/)[0];
  return h(
    "p",
    { class: "callout" },
    t("ask.modeUsed", { used: name(answer.modeUsed), asked: name(answer.mode) }),
    answer.modeReason ? h("span", { class: "small" }, " ", foreign(answer.modeReason)) : null,
  );
}

function drawClaim(claim, answer) {
  if (claim.draft) {
    return h("li", { class: "claim draft" }, h("p", { class: "claim-text" }, claim.text), h("p", { class: "facts" }, h("span", { class: "badge plain" }, t("ask.provisional"))));
  }
  if (claim.erased) {
    return h("li", { class: "claim erased" }, h("p", { class: "claim-text" }, t("ask.erased")), h("p", { class: "facts" }, badge(claim.verdict, t(`verdict.${claim.verdict}`)), reason(claim)));
  }
  return h(
    "li",
    { class: `claim ${claim.verdict}`, "data-ordinal": claim.ordinal },
    h("p", { class: "claim-text" }, claim.text, claim.citations.map((c) => citation(c, claim, answer))),
    h("p", { class: "facts" }, badge(claim.verdict, t(`verdict.${claim.verdict}`)), reason(claim)),
  );
}

function citation(cited, claim, answer) {
  const source = answer.sources.find((s) => s.marker === cited.marker && s.passage_id === cited.passage_id);
  const passage = source?.text ? { text: source.text } : undefined;
  return h(
    "button",
    {
      type: "button", class: "marker", "data-key": `cite-${claim.ordinal}-${cited.marker}`, title: cited.quote?.text ?? source?.text?.slice(0, 300) ?? null,
      "aria-label": t("ask.citation", { n: cited.marker, name: cited.document_name }),
      onclick: () => openReader({ ...cited, passage }),
    },
    `[${cited.marker}]`,
  );
}

/** What the checks found, in words; the machine-readable reason stands in the title. */
function reason(claim) {
  if (!claim.reason) return null;
  const words = reasonWords(claim.reason);
  return h("span", { class: "reason", title: claim.reason }, h("span", { class: "sr-only" }, `${t("verdict.why")}: `), foreign(words));
}

/** `words=0.86`, `number:330 m`, or what was done and why: `replaced_by_source;number:330 m`. */
function reasonWords(reason) {
  const [, name, sign, value = ""] = /^(\w+)([=:;]?)(.*)$/s.exec(reason) ?? [];
  if (!known(`reason.${name}`)) return reason;
  if (sign === ";") return `${t(`reason.${name}`)} (${reasonWords(value)})`;
  return t(`reason.${name}`, { value: sign === "=" ? percent(Number(value)) : value });
}

function sources(answer) {
  if (!answer.sources.length) return null;
  const cited = new Set(Object.values(answer.claims).flatMap((c) => c.citations.map((x) => x.marker)));
  const list = answer.sources.map((s) => drawSource(s, cited.has(s.marker)));
  const title = answer.status === "refused" ? t("ask.sourcesClosest") : t("ask.sources");
  return h("section", { class: "sources" }, h("h2", {}, title), h("ol", { class: "plain" }, list));
}

function drawSource(source, isCited) {
  const target = { ...source, passage: source.text ? { text: source.text } : undefined };
  return h(
    "li",
    { class: `source ${isCited ? "cited" : ""}` },
    h(
      "details",
      { "data-marker": source.marker, "data-keep": `${source.marker}-${source.passage_id}` },
      h("summary", { "data-key": `source-${source.marker}` }, h("span", { class: "marker-label" }, `[${source.marker}]`), place(source)),
      source.text === null ? h("p", { class: "muted" }, t("ask.source.gone")) : h("p", { class: "snippet" }, source.text),
      h(
        "p",
        { class: "facts" },
        h("span", { class: "chip" }, h("b", {}, t("search.score")), " ", score(source.score)),
        source.routes.map((r) => h("span", { class: "chip route" }, h("b", {}, t(`route.${r.route}`, {}, r.route)), ` #${r.rank} · ${score(r.score)}`)),
        source.collapsed ? h("span", {}, t("ask.source.collapsed", { n: source.collapsed })) : null,
        source.text === null ? null : button(t("documents.open"), () => openReader(target), { kind: "small", "aria-label": t("ask.citation", { n: source.marker, name: source.document_name }) }),
      ),
    ),
  );
}

function details(answer) {
  const rows = [];
  const add = (name, value) => value !== null && value !== undefined && value !== "" && rows.push(h("dt", {}, name), h("dd", {}, value));
  const timings = Object.entries(answer.timings ?? {});
  add(t("ask.timings"), timings.length ? timings.map(([k, v]) => h("span", { class: "chip" }, h("b", {}, t(`timing.${k}`, {}, k.replaceAll("_", " "))), " ", milliseconds(v))) : null);
  const usage = answer.usage;
  if (usage) add(t("ask.usage"), t("ask.usage.text", { prompt: number(usage.prompt_tokens ?? 0), completion: number(usage.completion_tokens ?? 0), cached: number(usage.cached_tokens ?? 0) }));
  add(t("ask.generation"), answer.generation);
  add(t("ask.policyVersion"), answer.policyVersion);
  add(t("ask.id"), h("code", {}, answer.id));
  return h("details", { class: "figures", "data-keep": "figures" }, h("summary", { "data-key": "details" }, t("ask.details")), h("dl", { class: "pairs" }, rows));
}
