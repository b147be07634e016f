/** Ask: a question, its answer as it is made, and the questions before it. */

import { call } from "../client.js";
import { applied, begun, fromStored, TERMINAL } from "../answer-state.js";
import { foreign, h, replace } from "../dom.js";
import { follow } from "../events.js";
import { ago } from "../format.js";
import { t } from "../i18n.js";
import { collection, session } from "../session.js";
import { badge, button, field, guarded, notice, problem, select, spinner } from "../ui.js";
import { drawAnswer } from "./answer.js";

const MODES = ["", "extract", "quote", "free"];
const HISTORY = 30;

/**
 * Outlives the view, so that an answer goes on while another section or language is shown.
 * `leans`: the next question belongs to the answer shown; `turns`: what was said before the question shown.
 */
const state = { question: "", mode: "", leans: false, turns: [], answer: null, trouble: null, history: null, cursor: null, collectionId: "", follower: null };
let redraw = () => {};
let redrawHistory = () => {};

export function reset() {
  stopFollowing();
  Object.assign(state, { question: "", mode: "", leans: false, turns: [], answer: null, trouble: null, history: null, cursor: null });
}

export function mount(root) {
  if (state.collectionId !== session.collectionId) {
    stopFollowing();
    Object.assign(state, { leans: false, turns: [], answer: null, trouble: null, history: null, cursor: null, collectionId: session.collectionId });
  }
  const shown = h("section", { class: "answer-place", "aria-label": t("ask.claims") });
  const spoken = h("p", { class: "spoken", role: "status", "aria-live": "polite" });
  const past = h("aside", { class: "card history" });
  const form = askForm();
  redraw = () => {
    replace(shown, state.trouble ? problem(state.trouble, { retry: () => submit() }) : null, state.answer ? drawAnswer(state.answer, { again }) : null);
    shown.setAttribute("aria-busy", String(isOpen()));
    const words = state.answer ? headline(state.answer) : "";
    if (spoken.textContent !== words) spoken.textContent = words;
    form.update();
  };
  redrawHistory = () => replace(past, h("h2", {}, t("ask.history")), drawHistory());
  replace(root, h("div", { class: "split" }, h("div", {}, h("h1", {}, t("ask.title")), form.node, spoken, shown), past));
  redraw();
  redrawHistory();
  if (!state.history) loadHistory();
  return () => {
    redraw = () => {};
    redrawHistory = () => {};
  };
}

function isOpen() {
  return Boolean(state.answer && !TERMINAL.has(state.answer.status));
}

/** The conversation up to the end of the answer shown; empty where nothing was answered. */
function said() {
  if (!state.answer?.text || isOpen()) return [];
  return [...state.turns, { role: "user", content: state.answer.question }, { role: "assistant", content: state.answer.text }];
}

function askForm() {
  const question = h("textarea", {
    rows: 3, maxlength: 4000, required: true, placeholder: t("ask.placeholder"), value: state.question,
    oninput: () => (state.question = question.value),
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) node.requestSubmit();
    },
  });
  const mode = select(MODES.map((m) => [m, t(`ask.mode.${m || "default"}`)]), state.mode, (m) => (state.mode = m));
  const leans = h("input", { type: "checkbox", onchange: () => (state.leans = leans.checked) });
  const leaning = h("label", { class: "check" }, leans, t("ask.leans"));
  const send = h("button", { class: "button primary", type: "submit" }, t("ask.submit"));
  const stop = button(t("ask.cancel"), (event) => guarded(event, cancel), { kind: "danger" });
  const node = h(
    "form",
    { class: "card ask", onsubmit: (event) => (event.preventDefault(), submit()) },
    field(t("ask.question"), question),
    leaning,
    h("div", { class: "ask-row" }, field(t("ask.mode"), mode), h("div", { class: "actions" }, h("span", { class: "small wide-only" }, t("ask.shortcut")), stop, send)),
  );
  return {
    node,
    update() {
      if (document.activeElement !== question) question.value = state.question;
      leaning.hidden = !said().length;
      leans.checked = state.leans;
      stop.hidden = !isOpen();
      send.disabled = isOpen();
    },
  };
}

/** The state in a few words, for the status line and for screen readers. */
function headline(answer) {
  if (answer.phase) return t(`ask.phase.${answer.phase}`, { n: answer.sources.length });
  const count = Object.values(answer.claims).length;
  if (answer.status === "answered" && count === 1) return t("ask.state.answeredOne");
  return t(`ask.state.${answer.status}`, { n: count }, "");
}

// -- a question and its stream --

async function submit() {
  const question = state.question.trim();
  if (!question || isOpen()) return;
  stopFollowing();
  state.trouble = null;
  state.turns = state.leans ? said() : [];
  state.answer = begun({ question, mode: state.mode });
  redraw();
  try {
    const body = { question, collection: collection().id, history: state.turns };
    if (state.mode) body.policy = { mode: state.mode };
    const { id } = await call("/v1/queries", { method: "POST", body });
    state.answer = { ...state.answer, id, phase: "recall" };
    redraw();
    await watch(id);
  } catch (error) {
    state.answer = null;
    state.trouble = error;
    redraw();
  }
}

async function again(question) {
  state.question = question;
  state.leans = false;
  await submit();
}

/** Follow the stream to its end, then show the stored answer: joined claims equal it. */
async function watch(id) {
  stopFollowing();
  const follower = new AbortController();
  state.follower = follower;
  let frame = 0;
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(() => ((frame = 0), redraw()));
  };
  loadHistory();
  await follow(
    id,
    (event, payload) => {
      if (state.follower !== follower) return;
      state.answer = applied(state.answer, event, payload);
      soon();
    },
    {
      signal: follower.signal,
      onDrop: () => {
        if (state.follower === follower) state.answer = { ...state.answer, phase: "reconnect" };
        soon();
      },
    },
  );
  if (state.follower !== follower) return;
  state.follower = null;
  const stored = await call(`/v1/queries/${encodeURIComponent(id)}`);
  if (state.answer?.id !== id) return;
  state.answer = fromStored(stored);
  redraw();
  loadHistory();
  if (isOpen()) await watch(id); // the stream could not be reached, but the engine answers: go on
}

function stopFollowing() {
  state.follower?.abort();
  state.follower = null;
}

async function cancel() {
  if (!state.answer?.id) return;
  state.answer = { ...state.answer, phase: "cancelling" };
  redraw();
  await call(`/v1/queries/${encodeURIComponent(state.answer.id)}`, { method: "DELETE" });
}

// -- recent questions --

async function loadHistory(more = false) {
  const wanted = session.collectionId;
  try {
    const page = await call("/v1/queries", { query: { collection: wanted, limit: HISTORY, cursor: more ? state.cursor : null } });
    if (wanted !== state.collectionId) return;
    const asked = page.items.filter((q) => q.task !== "search");
    state.history = more ? [...state.history, ...asked] : asked;
    state.cursor = page.next_cursor;
  } catch (error) {
    if (error.status !== 401) notice(error);
    state.history ??= [];
  }
  redrawHistory();
}

function drawHistory() {
  if (!state.history) return spinner();
  if (!state.history.length) return h("p", { class: "empty" }, t("ask.historyEmpty"));
  return [
    h(
      "ul",
      { class: "plain" },
      state.history.map((q) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", class: "past", "data-key": q.id, "aria-current": q.id === state.answer?.id ? "true" : null, onclick: (event) => guarded(event, () => reopen(q.id)) },
            foreign(q.question, { class: "past-question" }),
            h("span", { class: "facts" }, badge(q.status), h("span", {}, ago(q.created_at))),
          ),
        ),
      ),
    ),
    state.cursor ? button(t("app.more"), (event) => guarded(event, () => loadHistory(true)), { kind: "small" }) : null,
  ];
}

async function reopen(id) {
  const stored = await call(`/v1/queries/${encodeURIComponent(id)}`);
  stopFollowing();
  state.trouble = null;
  state.answer = fromStored(stored);
  state.question = stored.question;
  Object.assign(state, { leans: false, turns: [] });
  redraw();
  redrawHistory();
  window.scrollTo({ top: 0, behavior: "smooth" });
  if (isOpen()) watch(id).catch(notice);
}
