/** Placement: see what would move, then pin a collection or a document to a tier, or let use and age decide. */

import { call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { session } from "../session.js";
import { button, confirm, field, guarded, notice, select } from "../ui.js";
import { route, table, why } from "./index-moves.js";
import { tierName } from "./index-tiers.js";

const ALL = "";
const ONE = "document";
const state = { target: ALL, document: "", tier: "auto" };

export const placement = {
  name: "placement",
  kind: "wide",
  everyMs: 3_600_000, // a form: nothing to follow, but whether the key may use it is asked once
  load: async () => ({ allowed: Boolean(await call("/v1/admin/moves", { query: { limit: 1 } })), collections: session.collections }),
  draw: () => form(),
};

function form() {
  const outcome = h("div", { "aria-live": "polite" });
  const documentId = h("input", { type: "text", value: state.document, maxlength: 40, autocomplete: "off", spellcheck: "false", placeholder: "doc_…", oninput: () => (state.document = documentId.value.trim()) });
  const documentField = field(t("index.placement.document"), documentId);
  documentField.hidden = state.target !== ONE;
  const targets = [[ALL, t("index.placement.all")], ...session.collections.map((c) => [c.id, c.name]), [ONE, t("index.placement.one")]];
  const tier = select(tierOptions(), state.tier, (value) => (state.tier = value));
  const target = select(targets, state.target, (value) => {
    state.target = value;
    documentField.hidden = value !== ONE;
    tier.disabled = value === ALL; // a tier for everything is no choice
    if (value === ALL) state.tier = tier.value = "auto";
  });
  tier.disabled = state.target === ALL;
  const show = (event) => guarded(event, async () => replace(outcome, drawPlan(await send(true), outcome)));
  return [
    h("p", { class: "small" }, t("index.placement.about")),
    h(
      "div",
      { class: "row placement" },
      field(t("index.placement.target"), target),
      documentField,
      field(t("index.placement.tier"), tier),
      button(t("index.placement.show"), show, { kind: "primary", "data-key": "dry-run" }),
    ),
    outcome,
  ];
}

function tierOptions() {
  return [["auto", t("index.placement.auto")], ...["hot", "warm", "cold"].map((tier) => [tier, tierName(tier)])];
}

function send(dryRun) {
  const target = state.target === ALL ? null : state.target === ONE ? state.document : state.target;
  return call("/v1/admin/placement", { method: "POST", body: { target, tier: state.tier, dry_run: dryRun } });
}

function drawPlan(plan, outcome) {
  const total = t("index.placement.total", { documents: number(plan.documents), vectors: number(plan.vectors) });
  const pins = plan.target !== null;
  return [
    h("p", { class: "facts" }, h("b", { "data-plan": plan.documents }, plan.documents ? total : t("index.placement.nothing")), plan.others ? h("span", {}, t("index.placement.others", { n: number(plan.others) })) : null),
    plan.moves.length ? table(t("index.placement.plan"), ["document", "route", "reason"], plan.moves.map(drawMove)) : null,
    plan.documents > plan.moves.length ? h("p", { class: "small" }, t("index.placement.first", { n: number(plan.moves.length) })) : null,
    plan.documents || pins ? h("div", { class: "actions end" }, button(t(pins ? "index.placement.do" : "index.placement.follow"), (event) => guarded(event, () => carryOut(plan, total, outcome)), { kind: "primary", "data-key": "place" })) : null,
  ];
}

function drawMove(move) {
  return h("tr", {}, h("td", {}, foreign(move.document_name), h("code", { class: "small block" }, move.document_id)), h("td", {}, route(move)), h("td", {}, why(move)));
}

async function carryOut(plan, total, outcome) {
  const words = [h("p", {}, total), plan.target ? h("p", {}, t(state.tier === "auto" ? "index.placement.unpins" : "index.placement.pins", { tier: tierName(state.tier) })) : null];
  if (!(await confirm(t("index.placement.doTitle"), h("div", {}, words), t("index.placement.doIt")))) return;
  const done = await send(false);
  notice(t("index.placement.done", { n: number(done.documents) }));
  replace(outcome);
}
