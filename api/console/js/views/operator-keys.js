/** API keys: make one (shown once), revoke one. */

import { all, call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { ago } from "../format.js";
import { t } from "../i18n.js";
import { collection, session } from "../session.js";
import { badge, button, confirm, dialog, field, guarded, notice, problem, select } from "../ui.js";

const ROLES = ["reader", "writer", "admin", "operator"];

export const keys = {
  name: "keys",
  kind: "wide",
  everyMs: 15_000,
  load: async () => ({ items: await all("/v1/admin/keys") }),
  tools: (_found, refresh) => button(t("operator.keys.create"), () => keyForm(refresh), { kind: "small", "data-key": "new-key" }),
  draw(found, refresh) {
    const columns = ["name", "role", "collections", "used"];
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": t("operator.keys") },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, t(`operator.keys.${c}`))), h("th", { scope: "col" }, h("span", { class: "sr-only" }, t("operator.keys.revoke"))))),
        h("tbody", {}, found.items.map((key) => drawKey(key, refresh))),
      ),
    );
  },
};

function drawKey(key, refresh) {
  const names = key.collections?.map((id) => session.collections.find((c) => c.id === id)?.name ?? id);
  return h(
    "tr",
    { "data-id": key.id },
    h("td", {}, foreign(key.name), h("span", { class: "small block" }, foreign(key.tenant))),
    h("td", {}, h("code", {}, key.role)),
    h("td", {}, names ? foreign(names.join(", ")) : t("operator.keys.all")),
    h("td", {}, key.last_used_at ? ago(key.last_used_at) : t("operator.keys.never")),
    h(
      "td",
      { class: "figure" },
      key.revoked_at
        ? badge("cancelled", t("operator.keys.revoked"))
        : button(t("operator.keys.revoke"), (event) => guarded(event, () => revoke(key, refresh)), { kind: "small danger-quiet", "aria-label": t("operator.keys.revokeNamed", { name: key.name }) }),
    ),
  );
}

async function revoke(key, refresh) {
  if (!(await confirm(t("operator.keys.revokeTitle", { name: key.name }), h("p", {}, t("operator.keys.revokeText")), t("operator.keys.revoke")))) return;
  await call(`/v1/admin/keys/${encodeURIComponent(key.id)}`, { method: "DELETE" });
  await refresh();
}

function keyForm(refresh) {
  const box = dialog(t("operator.keys.create"), { kind: "narrow" });
  const name = h("input", { type: "text", required: true, maxlength: 200, autocomplete: "off" });
  const role = select(ROLES.map((r) => [r, t(`role.${r}`)]), "reader", () => {});
  const here = collection();
  const only = h("input", { type: "checkbox" });
  const trouble = h("div", {});
  const submit = h("button", { class: "button primary", type: "submit" }, t("operator.keys.create"));
  async function create(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const body = { name: name.value, role: role.value, collections: only.checked ? [here.id] : null };
      const made = await call("/v1/admin/keys", { method: "POST", body });
      replace(box.body, shownOnce(made, box.close));
      await refresh();
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
      field(t("operator.keys.name"), name),
      field(t("operator.keys.role"), role),
      here ? h("label", { class: "check" }, only, " ", foreign(t("operator.keys.onlyThis", { name: here.name }))) : null,
      trouble,
      h("div", { class: "actions end" }, button(t("app.cancel"), box.close), submit),
    ),
  );
  name.focus();
}

function shownOnce(made, close) {
  const shown = h("input", { type: "text", readonly: true, value: made.key, class: "secret", onfocus: () => shown.select() });
  const copy = async () => {
    await navigator.clipboard.writeText(made.key);
    notice(t("app.copied"));
  };
  return [
    field(t("operator.keys.made"), shown, t("operator.keys.madeText")),
    h("div", { class: "actions end" }, navigator.clipboard ? button(t("app.copy"), (event) => guarded(event, copy)) : null, button(t("app.close"), close, { kind: "primary" })),
  ];
}
