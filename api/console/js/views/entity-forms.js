/** What a person decides about an entity: another name, a pinned name, a merge, a split. */

import { call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { button, dialog, field, problem } from "../ui.js";

const pathOf = (id) => `/v1/entities/${encodeURIComponent(id)}`;

/** A small dialog with one form; what the door refuses is shown in it. */
function form(title, controls, submitWords, send) {
  const box = dialog(title, { kind: "narrow" });
  const trouble = h("div", {});
  const submit = h("button", { class: "button primary", type: "submit" }, submitWords);
  async function run(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      await send(box);
    } catch (error) {
      replace(trouble, problem(error));
    } finally {
      submit.disabled = false;
    }
  }
  replace(box.body, h("form", { onsubmit: run }, controls, trouble, h("div", { class: "actions end" }, button(t("app.cancel"), box.close), submit)));
  box.body.querySelector("input")?.focus();
}

function nameInput(value = "") {
  return h("input", { type: "text", required: true, maxlength: 200, autocomplete: "off", value });
}

export function renameForm(entity, decided) {
  const name = nameInput(entity.name);
  form(t("entity.rename"), field(t("entity.newName"), name, t("entity.renameText")), t("entity.rename"), async (box) => {
    await call(pathOf(entity.id), { method: "PATCH", body: { name: name.value } });
    box.close();
    await decided(t("entity.renamed", { name: name.value }));
  });
}

export function pinForm(entity, decided) {
  const name = nameInput();
  form(t("entity.pin"), field(t("entity.pinName"), name, t("entity.pinText")), t("entity.pin"), async (box) => {
    await call(pathOf(entity.id), { method: "PATCH", body: { pin_aliases: [name.value] } });
    box.close();
    await decided(t("entity.pinned", { name: name.value }));
  });
}

export function mergeForm(entity, decided) {
  const found = h("fieldset", { class: "choices" }, h("legend", {}, t("entity.mergeWith")));
  const text = h("input", { type: "search", value: entity.name, maxlength: 300, autocomplete: "off", onchange: () => look() });
  async function look() {
    const page = await call("/v1/entities", { query: { q: text.value, limit: 20 } });
    const others = page.items.filter((e) => e.id !== entity.id);
    replace(found, h("legend", {}, t("entity.mergeWith")), others.length ? others.map(choice) : h("p", { class: "muted" }, t("entities.none")));
  }
  look();
  form(t("entity.merge"), [h("p", {}, t("entity.mergeText", { name: entity.name })), field(t("entities.name"), text), found], t("entity.merge"), async (box) => {
    await call(`${pathOf(entity.id)}/merge`, { method: "POST", body: { entity_ids: chosen(found) } });
    box.close();
    await decided(t("entity.mergedNow"));
  });
}

function choice(entity) {
  const words = [entity.name, entity.description, t("entities.mentions", { n: number(entity.mentions) })].filter(Boolean).join(" · ");
  return h("label", { class: "check" }, h("input", { type: "checkbox", value: entity.id }), " ", foreign(words));
}

function chosen(fieldset) {
  return [...fieldset.querySelectorAll("input:checked")].map((box) => box.value);
}

export function splitForm(entity, mentions, decided) {
  const documents = new Map(mentions.map((m) => [m.document_id, m.document_name]));
  const name = nameInput(entity.name);
  const about = h("input", { type: "text", maxlength: 4000, autocomplete: "off" });
  const which = h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, t("entity.splitDocuments")),
    [...documents].map(([id, title]) => h("label", { class: "check" }, h("input", { type: "checkbox", value: id }), " ", foreign(title))),
  );
  form(t("entity.split"), [h("p", {}, t("entity.splitText")), field(t("entity.newName"), name), field(t("entity.description"), about), which], t("entity.split"), async (box) => {
    const body = { name: name.value, description: about.value, document_ids: chosen(which) };
    await call(`${pathOf(entity.id)}/split`, { method: "POST", body });
    box.close();
    await decided(t("entity.splitNow", { name: name.value }));
  });
}
