/** Operation: index tiers, jobs, the engine, keys. A key that is too weak for a part is told so there. */

import { h, poll, replace } from "../dom.js";
import { t } from "../i18n.js";
import { problem, spinner } from "../ui.js";
import { engine } from "./operator-engine.js";
import { jobs } from "./operator-jobs.js";
import { keys } from "./operator-keys.js";
import { tiers } from "./operator-tiers.js";

const PANELS = [
  { ...tiers, role: "operator" },
  { ...engine, role: "operator" },
  { ...jobs, role: "operator" },
  { ...keys, role: "admin" },
];

export function mount(root) {
  const stops = [];
  const cards = PANELS.map((panel) => {
    const body = h("div", {}, spinner());
    const tools = h("div", { class: "actions" });
    stops.push(run(panel, body, tools));
    return h("section", { class: `card panel ${panel.kind ?? ""}`, "data-panel": panel.name }, h("div", { class: "title-row" }, h("h2", {}, t(`operator.${panel.name}`)), tools), body);
  });
  replace(root, h("h1", {}, t("operator.title")), h("div", { class: "panels" }, cards));
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
