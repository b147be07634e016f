/** The passages of a document in order; choosing one shows where it stands. */

import { call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { button, guarded, problem, spinner } from "../ui.js";
import { placeWords } from "./reader-place.js";

const PAGE = 50;

/**
 * @param {string} path the document's door
 * @param {{version: number}} content
 * @param {(chosen: Object) => void} onchoose
 */
export function passageList(path, content, onchoose) {
  const node = h("div", { class: "reader-text" });
  const state = { items: null, cursor: null, chosen: null };

  async function more() {
    const page = await call(`${path}/passages`, { query: { version: content.version, limit: PAGE, cursor: state.cursor } });
    state.items = [...(state.items ?? []), ...page.items];
    state.cursor = page.next_cursor;
    draw();
  }

  function draw() {
    replace(
      node,
      h("ol", { class: "plain passages" }, state.items.map((p) => h("li", {}, entry(p)))),
      state.cursor ? button(t("app.more"), (event) => guarded(event, more), { "data-key": "more" }) : null,
    );
  }

  function entry(passage) {
    const isChosen = state.chosen && passage.start < state.chosen.end && state.chosen.start < passage.end;
    const chosen = () => {
      const { ordinal, heading_path, page, start, end, text } = passage;
      onchoose({ ordinal, heading_path, page, passage: { start, end, text } });
    };
    return h(
      "button",
      { type: "button", class: "passage-entry", onclick: chosen, "aria-current": isChosen ? "true" : null, "data-key": `passage-${passage.ordinal}` },
      h("span", { class: "facts" }, h("b", {}, `${passage.ordinal + 1}`), passage.heading_path.length ? foreign(passage.heading_path.join(" › ")) : null, placeWords(passage.places)),
      h("span", { class: "passage-text", lang: passage.lang === "und" ? null : passage.lang }, foreign(passage.text)),
    );
  }

  return {
    node,
    /** Called when the list comes into view; `chosen` is the highlighted span of code points, if any. */
    async open(chosen) {
      state.chosen = chosen;
      if (state.items) {
        draw();
      } else {
        replace(node, spinner());
        try {
          await more();
        } catch (error) {
          replace(node, problem(error, { retry: () => this.open(chosen) }));
          return;
        }
      }
      node.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
    },
  };
}
