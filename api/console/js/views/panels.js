/** Cards that load themselves again and again. A key that is too weak for one is told so there. */

import { h, poll, replace } from "../dom.js";
import { t } from "../i18n.js";
import { problem, spinner } from "../ui.js";

/**
 * @param {Array<{name: string, heading: string, role: string, kind?: string, everyMs: number,
 *     load: () => Promise<Object>, draw: (found: Object, refresh: () => Promise) => Node,
 *     tools?: (found: Object, refresh: () => Promise) => Node}>} panels
 * @returns {() => void} stops them
 */
export function mountPanels(root, title, intro, panels) {
  const stops = [];
  const cards = panels.map((panel) => {
    const body = h("div", {}, spinner());
    const tools = h("div", { class: "actions" });
    stops.push(run(panel, body, tools));
    return h("section", { class: `card panel ${panel.kind ?? ""}`, "data-panel": panel.name }, h("div", { class: "title-row" }, h("h2", {}, t(panel.heading)), tools), body);
  });
  replace(root, h("h1", {}, title), intro ? h("p", { class: "muted intro" }, intro) : null, h("div", { class: "panels" }, cards));
  return () => stops.forEach((stop) => stop());
}

/** Load a panel again and again; a refusal ends that, since a key does not grow. */
function run(panel, body, tools) {
  let seen = "";
  async function load() {
    try {
      const found = await panel.load();
      const now = JSON.stringify(found);
      if (now === seen) return true;
      seen = now;
      replace(tools, panel.tools?.(found, refresh));
      replace(body, panel.draw(found, refresh));
      return true;
    } catch (error) {
      seen = "";
      const weak = error.status === 403;
      replace(tools);
      replace(body, weak ? h("p", { class: "callout" }, t("operator.weak", { role: panel.role })) : problem(error, { retry: refresh }));
      return !weak && error.status !== 401;
    }
  }
  const refresh = () => load();
  return poll(load, panel.everyMs);
}
