/** One entity beside the list: its names, where documents name it and why, what people decided, and the decisions. */

import { all, call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { ago, number, score } from "../format.js";
import { t } from "../i18n.js";
import { toUtf16 } from "../text.js";
import { badge, button, confirm, dialog, guarded, notice, problem, spinner } from "../ui.js";
import { kindName, marks } from "./entities.js";
import { mergeForm, pinForm, renameForm, splitForm } from "./entity-forms.js";
import { openReader } from "./reader.js";

const SHOWN = 50; // mentions on the page; the door has the rest
const AROUND = 60; // characters to each side of a name

/** @param {string} id @param {() => void} changed told after each decision, so that the list follows */
export function openEntity(id, changed) {
  const box = dialog(t("entity.title"), { kind: "drawer" });
  load(box, id, changed);
}

export const pathOf = (id) => `/v1/entities/${encodeURIComponent(id)}`;

async function load(box, id, changed) {
  if (!box.body.childElementCount) replace(box.body, spinner());
  try {
    const path = pathOf(id);
    const [entity, mentions, events] = await Promise.all([
      call(path),
      call(`${path}/mentions`, { query: { limit: SHOWN } }),
      all(`${path}/events`),
    ]);
    replace(box.heading, foreign(entity.name));
    const decided = async (words) => {
      notice(words);
      changed();
      await load(box, id, changed);
    };
    replace(box.body, draw({ entity, mentions, events, box, decided, changed }));
  } catch (error) {
    replace(box.body, problem(error, { retry: () => load(box, id, changed) }));
  }
}

function draw(page) {
  const { entity, box, changed } = page;
  const into = entity.merged_into;
  return [
    h("p", { class: "facts" }, h("span", { class: "chip" }, kindName(entity.type)), h("code", {}, entity.id), marks(entity)),
    entity.description ? h("p", {}, foreign(entity.description)) : null,
    into ? h("p", { class: "callout" }, t("entity.mergedInto"), " ", button(into, () => (box.close(), openEntity(into, changed)), { kind: "link" })) : null,
    h("dl", { class: "pairs" }, names(entity)),
    into ? null : actions(page),
    h("h3", {}, t("entity.mentions", { n: number(entity.mentions) })),
    drawMentions(page.mentions.items),
    h("h3", {}, t("entity.decisions")),
    drawEvents(page),
  ];
}

function names(entity) {
  const links = entity.same_as.filter((url) => /^https?:\/\//.test(url));
  return [
    h("dt", {}, t("entity.names")),
    h("dd", {}, entity.aliases.map((alias) => h("span", { class: "chip" }, foreign(alias)))),
    links.length ? [h("dt", {}, t("entity.sameAs")), h("dd", {}, links.map((url) => h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, foreign(url))))] : null,
  ];
}

function actions({ entity, mentions, decided }) {
  const block = async () => {
    await call(pathOf(entity.id), { method: "PATCH", body: { blocked: !entity.blocked } });
    await decided(t(entity.blocked ? "entity.unblockedNow" : "entity.blockedNow", { name: entity.name }));
  };
  return h(
    "div",
    { class: "actions" },
    button(t("entity.rename"), () => renameForm(entity, decided), { kind: "small", "data-key": "rename" }),
    button(t("entity.pin"), () => pinForm(entity, decided), { kind: "small", "data-key": "pin" }),
    button(t("entity.merge"), () => mergeForm(entity, decided), { kind: "small", "data-key": "merge" }),
    button(t("entity.split"), () => splitForm(entity, mentions.items, decided), { kind: "small", disabled: !mentions.items.length, "data-key": "split" }),
    button(t(entity.blocked ? "entity.unblock" : "entity.block"), (event) => guarded(event, block), { kind: "small danger-quiet", "data-key": "block" }),
  );
}

function drawMentions(items) {
  if (!items.length) return h("p", { class: "muted" }, t("entity.noMentions"));
  return h("ul", { class: "plain mentions" }, items.map(drawMention));
}

function drawMention(mention) {
  const from = mention.start - mention.passage_start;
  const [start, end] = toUtf16(mention.text, [from, from + mention.end - mention.start]);
  const before = mention.text.slice(0, start);
  const target = {
    document_id: mention.document_id,
    document_name: mention.document_name,
    version: mention.version,
    passage: { start: mention.passage_start, end: mention.passage_start + [...mention.text].length, text: mention.text },
  };
  return h(
    "li",
    { class: "mention" },
    h("p", { class: "snippet" }, before.length > AROUND ? `…${before.slice(-AROUND)}` : before, h("mark", {}, mention.text.slice(start, end)), cut(mention.text.slice(end))),
    h(
      "p",
      { class: "facts" },
      h("button", { type: "button", class: "link", onclick: () => openReader(target) }, foreign(mention.document_name)),
      h("span", {}, t("entity.sure", { score: score(mention.score) })),
      h("code", { class: "reason" }, mention.reason.replaceAll(";", " · ")),
    ),
  );
}

function cut(text) {
  return text.length > AROUND ? `${text.slice(0, AROUND)}…` : text;
}

function drawEvents({ entity, events, decided }) {
  if (!events.length) return h("p", { class: "muted" }, t("entity.noDecisions"));
  const newest = events.find((e) => !e.undone);
  const undo = async (event) => {
    const words = h("p", {}, t("entity.undoText", { what: actionName(event) }));
    if (!(await confirm(t("entity.undoTitle"), words, t("entity.undo")))) return;
    await call(`${pathOf(entity.id)}/undo`, { method: "POST", body: { event_id: event.id } });
    await decided(t("entity.undone"));
  };
  return h(
    "ul",
    { class: "plain events" },
    events.map((event) =>
      h(
        "li",
        { "data-event": event.id },
        h("span", {}, actionName(event), details(event)),
        h("span", { class: "small" }, ago(event.at)),
        event.undone ? badge("cancelled", t("entity.event.undone")) : null,
        event === newest ? button(t("entity.undo"), (click) => guarded(click, () => undo(event)), { kind: "small", "data-key": "undo" }) : null,
      ),
    ),
  );
}

function actionName(event) {
  return t(`entity.event.${event.action}`, {}, event.action);
}

function details({ payload }) {
  const said = payload.alias ?? payload.new ?? (payload.entity_ids ?? (payload.entity_id ? [payload.entity_id] : [])).join(", ");
  return said ? [": ", foreign(said)] : null;
}
