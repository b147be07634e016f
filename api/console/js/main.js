/** The shell: sign-in, header, sections by address (`#/ask`), and the collection that all sections share. */

import { all, onUnauthenticated } from "./client.js";
import { collectionForm } from "./collections.js";
import { foreign, h, replace } from "./dom.js";
import { language, setLanguage, t } from "./i18n.js";
import { chooseCollection, forget, session, setCollections } from "./session.js";
import { button, notice, problem, spinner } from "./ui.js";
import * as ask from "./views/ask.js";
import * as documents from "./views/documents.js";
import * as entities from "./views/entities.js";
import * as index from "./views/index-page.js";
import * as operator from "./views/operator.js";
import * as search from "./views/search.js";
import { signInForm } from "./views/signin.js";

const SECTIONS = { ask, documents, search, entities, index, operator };
const NEEDS_COLLECTION = new Set(["ask", "documents", "search"]);

const app = document.getElementById("app");
let leave = () => {};

function section() {
  const name = location.hash.replace(/^#\//, "").split("/")[0];
  return name in SECTIONS ? name : "ask";
}

/** Draw everything for the present session, section and language. Views keep their state in their modules. */
function show() {
  leave();
  leave = () => {};
  document.title = session.key ? `${t(`nav.${section()}`)} · geo-engine` : "geo-engine";
  if (!session.key) {
    replace(app, languageSwitch("corner"), signInForm(begin));
    return;
  }
  const main = h("main", { id: "content", tabindex: "-1" });
  replace(app, h("a", { class: "skip", href: "#content", onclick: (e) => (e.preventDefault(), main.focus()) }, t("app.skip")), header(), main);
  if (NEEDS_COLLECTION.has(section()) && !session.collectionId) {
    replace(main, emptyState());
    return;
  }
  leave = SECTIONS[section()].mount(main) ?? (() => {});
}

function header() {
  return h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: "#/ask" }, h("img", { src: "favicon.svg", alt: "", width: 28, height: 28 }), "geo-engine"),
    h(
      "nav",
      { "aria-label": t("nav.label") },
      Object.keys(SECTIONS).map((name) =>
        h("a", { href: `#/${name}`, "aria-current": name === section() ? "page" : null, "data-key": `nav-${name}` }, t(`nav.${name}`)),
      ),
    ),
    h(
      "div",
      { class: "top-tools" },
      collectionPicker(),
      languageSwitch(),
      button(t("app.signOut"), signOut, { kind: "quiet", "data-key": "sign-out" }),
    ),
  );
}

function collectionPicker() {
  const picker = h(
    "select",
    {
      "aria-label": t("collection.label"),
      "data-key": "collection",
      disabled: session.collections.length === 0,
      onchange: () => (chooseCollection(picker.value), show()),
    },
    session.collections.length
      ? session.collections.map((c) => h("option", { value: c.id, selected: c.id === session.collectionId }, c.name))
      : h("option", {}, t("collection.none")),
  );
  const add = button("+", createCollection, { kind: "icon", "aria-label": t("collection.create"), title: t("collection.create"), "data-key": "add" });
  return h("div", { class: "picker" }, picker, add);
}

function createCollection() {
  collectionForm(async (made) => {
    await loadCollections();
    chooseCollection(made.id);
    if (!NEEDS_COLLECTION.has(section()) || section() === "search") location.hash = "#/documents";
    show();
    notice(t("collection.created", { name: made.name }));
  });
}

function emptyState() {
  return h(
    "section",
    { class: "card centre" },
    h("h1", {}, t("collection.empty.title")),
    h("p", {}, t("collection.empty.text")),
    button(t("collection.create"), createCollection, { kind: "primary" }),
    h("p", { class: "small" }, t("collection.empty.reader")),
  );
}

function languageSwitch(kind = "") {
  const [next, words, tag] = language() === "zh" ? ["en", "English", "en"] : ["zh", "中文", "zh-CN"];
  return button(
    words,
    () => {
      setLanguage(next);
      show();
    },
    { kind: `quiet ${kind}`, lang: tag, "data-key": "language", title: t("app.language") },
  );
}

async function loadCollections() {
  setCollections(await all("/v1/collections"));
}

async function begin() {
  replace(app, h("main", { class: "centre" }, spinner()));
  try {
    await loadCollections();
  } catch (error) {
    if (error.status === 401) return;
    const words = h("main", { class: "card centre" }, problem(error, { retry: begin }), button(t("app.signOut"), signOut, { kind: "quiet" }));
    replace(app, words);
    return;
  }
  if (!location.hash) history.replaceState(null, "", "#/ask");
  show();
}

function signOut() {
  forget();
  for (const view of Object.values(SECTIONS)) view.reset?.();
  document.querySelectorAll("dialog").forEach((node) => node.close());
  document.getElementById("notices").replaceChildren();
  show();
}

onUnauthenticated.handler = () => {
  if (!session.key) return; // the sign-in form says it itself
  signOut();
  notice(foreign(t("signin.expired")), { lasting: true });
};

window.addEventListener("hashchange", () => {
  show();
  if (session.key) document.getElementById("content")?.focus({ preventScroll: true });
});

if (session.key) begin();
else show();
