/** Moves of documents between tiers: what moved, by whom, from where, where to, why. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, moment, number } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, guarded, select } from "../ui.js";
import { tierName } from "./index-tiers.js";

const REASONS = ["", "pinned", "new", "used", "idle", "budget"];
const STATES = ["", "planned", "done", "dropped", "superseded"];
const PAGE = 25;
const state = { reason: "", status: "", shown: PAGE };

export const moves = {
  name: "moves",
  kind: "wide",
  everyMs: 4000,
  async load() {
    const { reason, status, shown } = state;
    return { reason, status, ...(await call("/v1/admin/moves", { query: { reason, status, limit: Math.min(200, shown) } })) };
  },
  tools(found, refresh) {
    const choose = (name) => (value) => (Object.assign(state, { [name]: value, shown: PAGE }), refresh());
    return [
      select(STATES.map((s) => [s, s ? t(`index.move.${s}`) : t("index.moves.anyState")]), found.status, choose("status"), { "aria-label": t("index.moves.state"), "data-key": "moves-state" }),
      select(REASONS.map((r) => [r, r ? t(`index.reason.${r}`) : t("index.moves.anyReason")]), found.reason, choose("reason"), { "aria-label": t("index.moves.reason"), "data-key": "moves-reason" }),
    ];
  },
  draw(found, refresh) {
    if (!found.items.length) return h("p", { class: "empty" }, t("index.moves.none"));
    const more = () => ((state.shown += PAGE), refresh());
    return [
      table(t("index.moves"), ["document", "route", "reason", "by", "state", "when"], found.items.map(drawMove)),
      found.next_cursor && state.shown < 200 ? button(t("app.more"), (event) => guarded(event, more), { kind: "small", "data-key": "more-moves" }) : null,
    ];
  },
};

export function table(label, columns, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, t(`index.moves.${c}`))))), h("tbody", {}, rows)),
  );
}

export function route(move) {
  return h("span", { class: "route-words" }, `${tierName(move.from_tier)} → ${tierName(move.to_tier)}`);
}

/** The reason and the numbers behind it. */
export function why(move) {
  const facts = Object.entries(move.facts).map(([name, value]) => t(`index.fact.${name}`, { n: number(value, 2) }, `${name} ${value}`));
  return [t(`index.reason.${move.reason}`, {}, move.reason), facts.length ? h("span", { class: "small block" }, facts.join(" · ")) : null];
}

function drawMove(move) {
  return h(
    "tr",
    { "data-move": move.id, "data-status": move.status },
    h("td", {}, move.document_name ? foreign(move.document_name) : h("i", {}, t("index.moves.gone")), h("code", { class: "small block" }, move.document_id)),
    h("td", {}, route(move)),
    h("td", {}, why(move)),
    h("td", {}, move.moved_by === "policy" ? t("index.moves.policy") : h("code", { class: "small" }, move.moved_by)),
    h("td", {}, badge(move.status, t(`index.move.${move.status}`, {}, move.status))),
    h("td", {}, h("time", { datetime: move.created_at, title: moment(move.created_at) }, ago(move.created_at))),
  );
}
