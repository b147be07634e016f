/** The dialog that makes a collection. */

import { call } from "./client.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { button, dialog, field, problem } from "./ui.js";

export function collectionForm(onMade) {
  const box = dialog(t("collection.create"), { kind: "narrow" });
  const name = h("input", { type: "text", required: true, maxlength: 200, autocomplete: "off" });
  const submit = h("button", { class: "button primary", type: "submit" }, t("collection.createSubmit"));
  const trouble = h("div", {});
  async function create(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const made = await call("/v1/collections", { method: "POST", body: { name: name.value } });
      box.close();
      await onMade(made);
    } catch (error) {
      replace(trouble, problem(error));
    } finally {
      submit.disabled = false;
    }
  }
  replace(
    box.body,
    h(
      "form",
      { onsubmit: create },
      field(t("collection.name"), name),
      trouble,
      h("div", { class: "actions end" }, button(t("app.cancel"), box.close), submit),
    ),
  );
  name.focus();
}
