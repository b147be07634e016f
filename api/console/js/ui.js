/** Pieces that several views share: badges, problems, notices, dialogs, meters. */

import { foreign, h, replace } from "./dom.js";
import { known, t } from "./i18n.js";

const TONES = {
  ready: "good", answered: "good", supported: "good", done: "good", published: "good",
  partial: "warn", incomplete: "warn", refused: "warn", rolled_back: "warn", unknown: "warn", paused: "warn",
  failed: "bad", unsupported: "bad", error: "bad",
  queued: "busy", processing: "busy", running: "busy", waiting: "busy", deleting: "busy", starting: "busy", planned: "busy",
};

export function badge(state, words = t(`status.${state}`, {}, state)) {
  return h("span", { class: `badge ${TONES[state] ?? "plain"}`, "data-state": state }, words);
}

export function button(words, onclick, { kind = "", ...rest } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, ...rest }, words);
}

export function spinner(words = t("app.loading")) {
  return h("p", { class: "loading" }, h("span", { class: "spinner", "aria-hidden": "true" }), words);
}

/** What a problem document says, with its request id, for the person and for whoever they ask. */
export function problem(error, { retry } = {}) {
  const lines = [];
  if (error.detail && error.detail !== error.message) lines.push(h("p", {}, foreign(error.detail)));
  if (error.status === 403) lines.push(h("p", {}, t("error.forbidden")));
  if (error.retryAfter) lines.push(h("p", {}, t("error.retryAfter", { n: error.retryAfter })));
  const facts = [];
  if (error.code) facts.push(t("error.code"), " ", h("code", {}, error.code));
  if (error.requestId) facts.push(facts.length ? " · " : "", t("error.requestId"), " ", h("code", {}, error.requestId));
  return h(
    "div",
    { class: "callout bad problem", role: "alert" },
    h("p", { class: "callout-title" }, foreign(error.message)),
    lines,
    facts.length ? h("p", { class: "small" }, facts) : null,
    retry ? button(t("app.retry"), retry, { kind: "small" }) : null,
  );
}

/** A passing remark at the edge of the page; problems stay until closed. */
export function notice(content, { lasting = false } = {}) {
  const place = document.getElementById("notices");
  const body = content instanceof Error ? problem(content) : h("p", {}, content);
  const close = h("button", { type: "button", class: "icon", "aria-label": t("app.close"), onclick: () => card.remove() }, "×");
  const card = h("div", { class: "notice" }, body, close);
  place.append(card);
  if (!lasting && !(content instanceof Error)) setTimeout(() => card.remove(), 6000);
}

/** Run an action of a button: disabled meanwhile, a failure becomes a notice. */
export async function guarded(event, action) {
  const control = event?.currentTarget;
  if (control) control.disabled = true;
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError" && error.status !== 401) notice(error);
    return undefined;
  } finally {
    if (control?.isConnected) control.disabled = false;
  }
}

/**
 * A modal dialog. Escape and the backdrop close it; the focus returns to where it was.
 * @returns {{node: HTMLDialogElement, body: HTMLElement, close: () => void}}
 */
export function dialog(title, { kind = "", onclose = () => {} } = {}) {
  const close = () => node.close();
  const heading = h("h2", { id: "dialog-title" }, title);
  const body = h("div", { class: "dialog-body" });
  const node = h(
    "dialog",
    {
      class: kind,
      "aria-labelledby": "dialog-title",
      onclose: () => (node.remove(), onclose()),
      onclick: (event) => event.target === node && close(),
    },
    h(
      "div",
      { class: "dialog-box" },
      h("header", { class: "dialog-head" }, heading, h("button", { type: "button", class: "icon", "aria-label": t("app.close"), onclick: close }, "×")),
      body,
    ),
  );
  document.body.append(node);
  node.showModal();
  return { node, body, heading, close };
}

/** Ask before something that cannot be undone. Resolves to whether it was confirmed. */
export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    let agreed = false;
    const box = dialog(title, { kind: "narrow", onclose: () => resolve(agreed) });
    replace(
      box.body,
      text,
      h(
        "div",
        { class: "actions end" },
        button(t("app.cancel"), box.close, { autofocus: true }),
        button(yes, () => ((agreed = true), box.close()), { kind: "danger" }),
      ),
    );
    box.body.querySelector("button").focus();
  });
}

export function field(label, control, hint) {
  const id = control.id || `f${Math.random().toString(36).slice(2, 9)}`;
  control.id = id;
  return h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? h("p", { class: "small" }, hint) : null);
}

export function select(options, value, onchange, attributes = {}) {
  const node = h(
    "select",
    { onchange: () => onchange(node.value), ...attributes },
    options.map(([key, words]) => h("option", { value: key, selected: key === value }, words)),
  );
  return node;
}

/** A progress bar with its words beside it; an unknown total shows as indeterminate. */
export function meter(done, total, label) {
  const certain = total > 0;
  const bar = h("progress", certain ? { max: total, "aria-label": label } : { "aria-label": label });
  if (certain) bar.value = done;
  return bar;
}

/** Name, heading path and page of a passage. */
export function place({ document_name: name, heading_path: path, page, version }, { withName = true } = {}) {
  const parts = [];
  if (withName) parts.push(foreign(name || "–", { class: "name" }));
  if (path?.length) parts.push(foreign(path.join(" › "), { class: "path" }));
  if (page) parts.push(h("span", {}, t("place.page", { n: page })));
  if (version > 1) parts.push(h("span", {}, t("place.version", { n: version })));
  return h("span", { class: "place" }, parts);
}

const OOXML = "application/vnd.openxmlformats-officedocument";
const TYPES = {
  [`${OOXML}.wordprocessingml.document`]: "DOCX", [`${OOXML}.spreadsheetml.sheet`]: "XLSX", [`${OOXML}.presentationml.presentation`]: "PPTX",
  "application/vnd.oasis.opendocument.text": "ODT", "application/vnd.oasis.opendocument.spreadsheet": "ODS", "application/epub+zip": "EPUB",
  "text/plain": "TXT", "text/markdown": "Markdown", "text/html": "HTML", "application/pdf": "PDF", "message/rfc822": "EML", "multipart/related": "MHTML",
  "image/png": "PNG", "image/jpeg": "JPEG", "image/tiff": "TIFF", "image/webp": "WebP", "image/bmp": "BMP", "image/gif": "GIF",
  "text/csv": "CSV", "text/tab-separated-values": "TSV", "application/json": "JSON", "application/jsonl": "JSON Lines", "application/xml": "XML",
  "application/rss+xml": "RSS", "application/atom+xml": "Atom", "application/x-subrip": "SRT", "text/vtt": "WebVTT", "text/x-rst": "reStructuredText",
};

/** A media type as people call it. */
export function mediaName(type) {
  return TYPES[type] ?? type;
}

export function advice(code) {
  const key = `advice.${code}`;
  if (known(key)) return t(key);
  for (const [pattern, name] of [
    [/encrypt|password/, "encrypted"],
    [/no_text|scan/, "no_text"],
    [/empty|blank/, "empty"],
    [/unsupported|format|unknown_type/, "unsupported_format"],
    [/mismatch/, "type_mismatch"],
    [/corrupt|malformed|damaged|broken|parse/, "corrupt"],
    [/too_large|too_big|too_many|bomb|inflat|limit/, "too_large"],
    [/timeout|deadline|too_slow/, "timeout"],
    [/memory|resource/, "resource"],
    [/unavailable|disk/, "unavailable"],
  ]) {
    if (pattern.test(code)) return t(`advice.${name}`);
  }
  return t("advice.other");
}
