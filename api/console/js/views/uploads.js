/** Uploads under way. They outlive the view, so that changing the section does not stop them. */

import { upload } from "../client.js";
import { foreign, h } from "../dom.js";
import { bytes, percent } from "../format.js";
import { t } from "../i18n.js";
import { button, meter, problem } from "../ui.js";

const AT_ONCE = 2;

let uploads = [];
let landed = () => {};
let moved = () => {};

/** Be told when a file has arrived, and when the picture of the uploads changes. */
export function onUploadsChanged(onLanded, onMoved) {
  landed = onLanded;
  moved = onMoved;
}

export function forgetUploads() {
  for (const entry of uploads) entry.abort?.();
  uploads = [];
}

export function enqueue(target, file) {
  uploads.push({ file, collectionId: target.id, sent: 0, total: file.size, state: "waiting", error: null, known: "", abort: null });
  next();
}

function next() {
  const busy = uploads.filter((u) => u.state === "sending").length;
  const waiting = uploads.filter((u) => u.state === "waiting").slice(0, AT_ONCE - busy);
  waiting.forEach(send);
  moved();
}

async function send(entry) {
  entry.state = "sending";
  const form = new FormData();
  form.append("collection", entry.collectionId);
  form.append("file", entry.file, entry.file.name);
  const request = upload("/v1/documents", form, (sent, total) => {
    Object.assign(entry, { sent, total });
    moved();
  });
  entry.abort = request.abort;
  try {
    const { status, body } = await request.done;
    if (status === 200) Object.assign(entry, { state: "known", known: body.name });
    else drop(entry);
    landed();
  } catch (error) {
    if (error.name === "AbortError") drop(entry);
    else Object.assign(entry, { state: "failed", error });
  }
  next();
}

function drop(entry) {
  uploads = uploads.filter((u) => u !== entry);
}

export function drawUploads(collectionId) {
  return uploads.filter((u) => u.collectionId === collectionId).map(drawUpload);
}

function drawUpload(entry) {
  const { file, state } = entry;
  const away = () => (entry.abort?.(), drop(entry), moved());
  if (state === "failed" || state === "known") {
    const words = state === "known" ? h("p", {}, t("documents.knownBytes", { name: entry.known })) : problem(entry.error);
    return h("li", { class: "card upload" }, h("div", { class: "document-head" }, foreign(file.name, { class: "name" }), button(t("documents.dismiss"), away, { kind: "small" })), words);
  }
  const share = entry.total ? entry.sent / entry.total : 0;
  return h(
    "li",
    { class: "card upload" },
    h(
      "div",
      { class: "document-head" },
      foreign(file.name, { class: "name" }),
      h("span", { class: "facts" }, h("span", {}, bytes(file.size)), h("span", {}, share < 1 ? `${t("documents.uploading")} ${percent(share)}` : t("documents.received"))),
      h("button", { type: "button", class: "icon", onclick: away, "aria-label": t("documents.abort", { name: file.name }) }, "×"),
    ),
    meter(entry.sent, entry.total, t("documents.uploading")),
  );
}
