/** Documents of the open collection: upload, watch the stages, open, reprocess, delete. */

import { call } from "../client.js";
import { foreign, h, poll, replace } from "../dom.js";
import { ago, bytes, moment, percent } from "../format.js";
import { t } from "../i18n.js";
import { remarkWords } from "../remarks.js";
import { collection, session } from "../session.js";
import { advice, badge, button, confirm, field, guarded, mediaName, meter, notice, problem, select, spinner } from "../ui.js";
import { openReader } from "./reader.js";
import { drawUploads, enqueue, forgetUploads, onUploadsChanged } from "./uploads.js";

const POLL_MS = 800;
const STAGES = ["normalize", "disambiguate", "index"];
const FILTERS = ["", "ready", "processing", "queued", "failed", "deleting", "outdated", "near_duplicates"];
const FLAGS = ["outdated", "near_duplicates"]; // filters that are no status

const state = { items: null, tail: [], cursor: null, filter: "", trouble: null };

export function reset() {
  Object.assign(state, { items: null, tail: [], cursor: null, filter: "", trouble: null });
  forgetUploads();
}

export function mount(root) {
  Object.assign(state, { items: null, tail: [], cursor: null, trouble: null });
  const uploads = h("ul", { class: "plain uploads", "aria-live": "polite" });
  const list = h("section", { "aria-label": t("documents.title") });
  let seen = "";
  const redraw = () => {
    const now = JSON.stringify([state.items, state.tail, state.trouble?.message]);
    if (now === seen) return; // an unchanged list keeps the focus, the selection and open remarks
    seen = now;
    replace(list, drawList(refresh));
  };
  const redrawUploads = () => replace(uploads, drawUploads(collection().id));
  const stopPolling = poll(() => load(redraw), POLL_MS);
  const refresh = () => load(redraw);
  const filter = select(FILTERS.map((f) => [f, filterName(f)]), state.filter, (f) => {
    Object.assign(state, { filter: f, items: null, tail: [], cursor: null });
    redraw();
    refresh();
  });
  onUploadsChanged(() => (redrawUploads(), refresh()), redrawUploads);
  replace(
    root,
    h("div", { class: "title-row" }, h("h1", {}, t("documents.title")), h("div", { class: "inline" }, field(t("documents.filter"), filter))),
    dropZone(root),
    uploads,
    list,
  );
  redrawUploads();
  redraw();
  return () => {
    stopPolling();
    onUploadsChanged(() => {}, () => {});
  };
}

function dropZone(root) {
  const picker = h("input", { type: "file", multiple: true, id: "files", class: "sr-only", onchange: () => (take(picker.files), (picker.value = "")) });
  const zone = h(
    "div",
    { class: "drop" },
    h("p", {}, t("documents.drop"), " ", picker, h("label", { for: "files", class: "button primary" }, t("documents.choose"))),
    h("p", { class: "small" }, t("documents.formats")),
  );
  const lit = (on) => (event) => {
    event.preventDefault();
    zone.classList.toggle("over", on);
  };
  for (const node of [root, zone]) {
    node.ondragover = lit(true);
    node.ondragleave = lit(false);
    node.ondrop = (event) => {
      lit(false)(event);
      event.stopPropagation();
      take(event.dataTransfer.files);
    };
  }
  return zone;
}

function take(files) {
  for (const file of files) enqueue(collection(), file);
}

function filterName(filter) {
  if (!filter) return t("documents.filter.all");
  return t(FLAGS.includes(filter) ? `documents.filter.${filter}` : `status.${filter}`);
}

function filterQuery(filter) {
  return FLAGS.includes(filter) ? { [filter]: true } : { status: filter };
}

/** Read the first page again; documents of later pages that still move are read one by one. */
async function load(redraw) {
  const wanted = session.collectionId;
  const filter = state.filter;
  try {
    const page = await call("/v1/documents", { query: { collection: wanted, ...filterQuery(filter), limit: 50 } });
    if (wanted !== session.collectionId || filter !== state.filter) return true;
    const fresh = new Set(page.items.map((d) => d.id));
    state.items = page.items;
    if (!state.tail.length) state.cursor = page.next_cursor;
    state.tail = await Promise.all(state.tail.filter((d) => !fresh.has(d.id)).map(renewed)).then((all) => all.filter(Boolean));
    state.trouble = null;
  } catch (error) {
    state.trouble = error;
  }
  redraw();
  return true;
}

async function renewed(document_) {
  if (document_.status === "ready" || document_.status === "failed") return document_;
  try {
    return await call(document_.status_url);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function loadMore(redraw) {
  const page = await call("/v1/documents", { query: { collection: session.collectionId, ...filterQuery(state.filter), limit: 50, cursor: state.cursor } });
  state.tail = [...state.tail, ...page.items];
  state.cursor = page.next_cursor;
  await redraw();
}

function drawList(refresh) {
  if (state.trouble && !state.items) return problem(state.trouble, { retry: refresh });
  if (!state.items) return spinner();
  const all = [...state.items, ...state.tail];
  if (!all.length) return h("p", { class: "empty card" }, t(state.filter ? "documents.emptyFiltered" : "documents.empty"));
  return [
    state.trouble ? problem(state.trouble) : null,
    h("ul", { class: "plain documents" }, all.map((d) => drawDocument(d, refresh))),
    state.cursor ? button(t("app.more"), (event) => guarded(event, () => loadMore(refresh))) : null,
  ];
}

function drawDocument(document_, refresh) {
  const { id, name, status, title } = document_;
  const readable = document_.live_version !== null;
  const open = () => openReader({ document_id: id, document_name: name });
  return h(
    "li",
    { class: "card document", "data-id": id, "data-status": status },
    h(
      "div",
      { class: "document-head" },
      readable
        ? h("button", { type: "button", class: "link name", onclick: open, "data-key": `name-${id}` }, foreign(name))
        : foreign(name, { class: "name" }),
      badge(status),
    ),
    title && title !== name ? h("p", { class: "muted document-title" }, foreign(title)) : null,
    status === "ready" ? null : stages(document_),
    document_.error ? failure(document_) : null,
    remarks(document_),
    alike(document_),
    h("div", { class: "document-foot" }, facts(document_), actions(document_, { readable, open, refresh })),
  );
}

function actions({ id, name, status }, { readable, open, refresh }) {
  return h(
    "div",
    { class: "actions" },
    readable ? button(t("documents.open"), open, { kind: "small", "aria-label": t("documents.openNamed", { name }), "data-key": `open-${id}` }) : null,
    status === "ready" || status === "failed"
      ? button(t("documents.reprocess"), (event) => guarded(event, () => reprocess(id, refresh)), { kind: "small", "aria-label": t("documents.reprocessNamed", { name }), "data-key": `again-${id}` })
      : null,
    status === "deleting"
      ? null
      : button(t("documents.delete"), (event) => guarded(event, () => remove({ id, name }, refresh)), { kind: "small danger-quiet", "aria-label": t("documents.deleteNamed", { name }), "data-key": `delete-${id}` }),
  );
}

function facts(document_) {
  const { counts, pages, size_bytes: size, encoding, encoding_confidence: sure, version, live_version: live } = document_;
  return h(
    "p",
    { class: "facts" },
    h("span", {}, bytes(size)),
    document_.media_type ? h("span", {}, mediaName(document_.media_type)) : null,
    pages ? h("span", {}, t("documents.pages", { n: pages })) : null,
    counts.passages ? h("span", {}, t("documents.passages", { n: counts.passages })) : null,
    counts.entities ? h("span", {}, t("documents.entities", { n: counts.entities })) : null,
    encoding ? h("span", {}, sure === null || sure >= 0.995 ? encoding : t("documents.encoding", { encoding, share: percent(sure) })) : null,
    version > 1 ? h("span", {}, t("documents.version", { n: version })) : null,
    live && live !== version ? h("span", {}, t("documents.served", { n: live })) : null,
    document_.outdated ? h("span", {}, t("documents.outdated")) : null,
    h("time", { datetime: document_.created_at, title: moment(document_.created_at) }, ago(document_.created_at)),
  );
}

/** The walk of a document as steps; the present one carries its progress. */
function stages({ status, stage, progress }) {
  if (status === "deleting") return h("p", { class: "loading" }, h("span", { class: "spinner", "aria-hidden": "true" }), t(`stage.${stage ?? "unindex"}`, {}, stage));
  const at = STAGES.indexOf(stage ?? "normalize");
  const steps = [...STAGES, "ready"].map((name, n) => {
    const step = n < at ? "done" : n > at ? "later" : status === "failed" ? "failed" : "now";
    const counted = step === "now" && progress.total > 0;
    return h(
      "li",
      { class: `step ${step}`, "data-stage": name },
      h("span", { class: "dot", "aria-hidden": "true" }),
      h("span", {}, t(`stage.${name}`)),
      h("span", { class: "sr-only" }, ` (${t(`stage.state.${step}`)})`),
      counted ? h("span", { class: "small" }, t("stage.progress", progress)) : null,
    );
  });
  const busy = status === "processing" && progress.total > 0;
  return [h("ol", { class: "steps", "aria-label": t("stage.label") }, steps), busy ? meter(progress.done, progress.total, t(`stage.${stage}`, {}, stage)) : null];
}

/** Documents with nearly the same text, the one most alike first. */
function alike({ id, near_duplicates: near }) {
  if (!near?.length) return null;
  const entry = (other) =>
    h(
      "li",
      {},
      h("button", { type: "button", class: "link", onclick: () => openReader({ document_id: other.document_id, document_name: other.name }) }, foreign(other.name)),
      ` ${percent(other.similarity)}`,
    );
  return h("details", { "data-keep": `alike-${id}` }, h("summary", { class: "small" }, t("documents.alike", { n: near.length })), h("ul", { class: "small" }, near.map(entry)));
}

function failure({ error, status, version, live_version: live }) {
  return h(
    "div",
    { class: `callout ${status === "failed" ? "bad" : "warn"}` },
    status === "failed" && live ? h("p", {}, t("documents.versionFailed", { n: version, live })) : null,
    h("p", { class: "callout-title" }, foreign(error.detail || error.code), " ", h("code", {}, error.code)),
    status === "failed" ? h("p", {}, h("b", {}, `${t("documents.whatToDo")}: `), advice(error.code)) : null,
  );
}

function remarks({ id, warnings }) {
  if (!warnings?.length) return null;
  return h("details", { "data-keep": `remarks-${id}` }, h("summary", { class: "small" }, t("documents.warnings", { n: warnings.length })), h("ul", { class: "small" }, warnings.map((w) => h("li", {}, foreign(remarkWords(w))))));
}

async function reprocess(id, refresh) {
  await call(`/v1/documents/${encodeURIComponent(id)}/reprocess`, { method: "POST" });
  notice(t("documents.reprocessStarted"));
  await refresh();
}

async function remove(document_, refresh) {
  const text = [h("p", { class: "name" }, foreign(document_.name)), h("p", {}, t("documents.deleteText"))];
  if (!(await confirm(t("documents.deleteTitle"), text, t("documents.delete")))) return;
  await call(`/v1/documents/${encodeURIComponent(document_.id)}`, { method: "DELETE" });
  notice(t("documents.deleteStarted"));
  await refresh();
}
