/** The sign-in form: a key is tried on a door before it is kept. */

import { onUnauthenticated, call } from "../client.js";
import { h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { forget, session, signIn } from "../session.js";
import { problem } from "../ui.js";

export function signInForm(onDone) {
  const input = h("input", {
    id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false", autocapitalize: "none",
    "aria-describedby": "key-hint",
  });
  const submit = h("button", { class: "button primary", type: "submit" }, t("signin.submit"));
  const trouble = h("div", {});
  async function attempt(event) {
    event.preventDefault();
    const key = input.value.trim();
    if (!key) return;
    submit.disabled = true;
    replace(trouble);
    const told = onUnauthenticated.handler;
    onUnauthenticated.handler = () => {};
    try {
      session.key = key;
      await call("/v1/collections", { query: { limit: 1 } });
      signIn(key);
      onDone();
    } catch (error) {
      forget();
      if (error.status === 401) error.message = t("signin.invalid");
      if (error.status === 401) error.detail = "";
      replace(trouble, problem(error));
      input.focus();
    } finally {
      onUnauthenticated.handler = told;
      submit.disabled = false;
    }
  }
  setTimeout(() => input.focus());
  return h(
    "main",
    { class: "signin" },
    h("div", { class: "brand big" }, h("img", { src: "favicon.svg", alt: "", width: 40, height: 40 }), "geo-engine"),
    h("p", { class: "muted" }, t("app.tagline")),
    h(
      "form",
      { class: "card", onsubmit: attempt },
      h("h1", {}, t("signin.title")),
      h("div", { class: "field" }, h("label", { for: "key" }, t("signin.key")), input),
      trouble,
      submit,
      h("p", { class: "small", id: "key-hint" }, t("signin.hint")),
    ),
  );
}
