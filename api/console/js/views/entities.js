/** Entities: find people, organisations, places and things by any of their names; one opens beside the list. */

import { call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, field, guarded, problem, select, spinner } from "../ui.js";
import { openEntity } from "./entity.js";

const KINDS = ["", "PERSON", "ORG", "GPE", "LOC", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW"];

const state = { text: "", kind: "", merged: false, items: null, cursor: null };
let asked = 0; // answers of earlier searches are dropped

export function reset() {
  Object.assign(state, { text: "", kind: "", merged: false, items: null, cursor: null });
}

export function mount(root) {
  const results = h("section", { "aria-live": "polite", "aria-label": t("entities.title") });
  const refresh = () => search(results, refresh);
  const text = h("input", { type: "search", value: state.text, maxlength: 300, autocomplete: "off", oninput: () => (state.text = text.value) });
  const merged = h("input", { type: "checkbox", checked: state.merged, onchange: () => ((state.merged = merged.checked), refresh()) });
  replace(
    root,
    h("h1", {}, t("entities.title")),
    h("p", { class: "muted" }, t("entities.intro")),
    h(
      "form",
      { class: "card row", role: "search", onsubmit: (event) => (event.preventDefault(), refresh()) },
      field(t("entities.name"), text),
      field(t("entities.kind"), select(KINDS.map((k) => [k, kindName(k)]), state.kind, (k) => ((state.kind = k), refresh()))),
      h("button", { class: "button primary", type: "submit" }, t("entities.find")),
    ),
    h("label", { class: "check" }, merged, " ", t("entities.withMerged")),
    results,
  );
  refresh();
}

export function kindName(kind) {
  return kind ? t(`entity.kind.${kind}`, {}, kind) : t("entities.anyKind");
}

async function search(results, refresh) {
  const mine = ++asked;
  if (!state.items) replace(results, spinner());
  try {
    const page = await load(null);
    if (mine !== asked) return;
    Object.assign(state, { items: page.items, cursor: page.next_cursor });
    replace(results, drawList(results, refresh));
  } catch (error) {
    if (mine === asked) replace(results, problem(error, { retry: refresh }));
  }
}

function load(cursor) {
  return call("/v1/entities", { query: { q: state.text.trim(), type: state.kind, include_merged: state.merged || "", limit: 50, cursor } });
}

function drawList(results, refresh) {
  if (!state.items.length) return h("p", { class: "card empty" }, t("entities.none"));
  const more = async () => {
    const page = await load(state.cursor);
    Object.assign(state, { items: [...state.items, ...page.items], cursor: page.next_cursor });
    replace(results, drawList(results, refresh));
  };
  return [
    h("ul", { class: "plain entities" }, state.items.map((entity) => drawEntity(entity, refresh))),
    state.cursor ? button(t("entities.more"), (event) => guarded(event, more), { "data-key": "more-entities" }) : null,
  ];
}

function drawEntity(entity, refresh) {
  const others = entity.aliases.filter((alias) => alias !== entity.name);
  return h(
    "li",
    { class: "card entity", "data-id": entity.id },
    h(
      "div",
      { class: "document-head" },
      h("button", { type: "button", class: "link name", "data-key": `open-${entity.id}`, onclick: () => openEntity(entity.id, refresh) }, foreign(entity.name)),
      h("p", { class: "facts" }, h("span", { class: "chip" }, kindName(entity.type)), h("span", {}, t("entities.mentions", { n: number(entity.mentions) })), marks(entity)),
    ),
    entity.description ? h("p", { class: "muted" }, foreign(entity.description)) : null,
    entity.beside.length ? h("p", { class: "small" }, t("entities.beside"), " ", foreign(entity.beside.join(" · "))) : null,
    others.length ? h("p", { class: "small" }, foreign(others.slice(0, 8).join(" · "))) : null,
  );
}

/** What sets an entity apart: blocked, merged into another, brought by documents alone. */
export function marks(entity) {
  return [
    entity.blocked ? badge("failed", t("entity.blocked")) : null,
    entity.merged_into ? badge("partial", t("entity.merged")) : null,
    h("span", { class: "small" }, t(`entity.from.${entity.provenance}`, {}, entity.provenance)),
  ];
}
