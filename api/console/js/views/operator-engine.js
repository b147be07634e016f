/** The generation engine as last heard: state, plan, free share of the KV blocks. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, number, percent } from "../format.js";
import { t } from "../i18n.js";
import { badge, meter } from "../ui.js";

export const engine = {
  name: "engine",
  everyMs: 3000,
  load: () => call("/v1/admin/engine"),
  draw(found) {
    const { plan } = found;
    const free = found.kv_free_share ?? null;
    const rows = [];
    const add = (name, ...value) => rows.push(h("dt", {}, t(`operator.engine.${name}`)), h("dd", {}, value));
    add("state", badge(found.state), found.detail ? [" ", foreign(found.detail, { class: "small" })] : null);
    if (free !== null) add("kvFree", h("span", { class: "gauge" }, meter(free, 1, t("operator.engine.kvFree")), percent(free)));
    if (found.running !== null) add("requests", t("operator.engine.requestsText", { running: found.running, waiting: found.waiting ?? 0 }));
    if (plan) {
      add("model", foreign(plan.model));
      add("languages", (plan.languages ?? []).join(", "));
      add("context", t("operator.engine.tokens", { n: number(plan.max_model_len) }));
      add("budget", t("operator.engine.tokens", { n: number(plan.context_budget) }));
      add("blocks", t("operator.engine.blocksText", { blocks: number(plan.kv_blocks), size: plan.block_size }));
      add("parallel", t("operator.engine.parallelText", plan));
    }
    if (found.heard_at) add("heard", ago(found.heard_at));
    return [h("dl", { class: "pairs" }, rows), plan ? null : h("p", { class: "empty" }, t("operator.engine.noPlan"))];
  },
};
