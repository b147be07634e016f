/** Index tiers: what is served, a rebuild with its progress, a rollback. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, bytes, number } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, confirm, guarded, meter, notice } from "../ui.js";

const OPEN = new Set(["queued", "running", "paused"]);
const watched = new Map(); // tier → id of the build to show beside it

export const tiers = {
  name: "tiers",
  kind: "wide",
  everyMs: 1500,
  async load() {
    const { items } = await call("/v1/admin/tiers");
    for (const tier of items) {
      const open = tier.build?.id ?? tier.open_build?.id ?? tier.open_build;
      if (typeof open === "string") watched.set(tier.tier, open);
    }
    const builds = {};
    for (const [tier, id] of watched) builds[tier] = await call(`/v1/admin/builds/${encodeURIComponent(id)}`).catch(() => null);
    return { items, builds };
  },
  draw({ items, builds }, refresh) {
    if (!items.length) return h("p", { class: "empty" }, t("operator.noTiers"));
    return h("ul", { class: "plain tiers" }, items.map((tier) => drawTier(tier, builds[tier.tier], refresh)));
  },
};

function drawTier(tier, build, refresh) {
  const name = t(`operator.tier.${tier.tier}`, {}, tier.tier);
  const busy = build && OPEN.has(build.status);
  const rows = [];
  const add = (words, value) => value !== undefined && value !== null && value !== "" && rows.push(h("dt", {}, words), h("dd", {}, value));
  add(t("operator.generation"), tier.generation);
  add(t("operator.vectors"), number(tier.vectors ?? tier.count ?? 0));
  add(t("operator.bytes"), tier.bytes === undefined || tier.bytes === null ? null : bytes(tier.bytes));
  add(t("operator.published"), tier.published_at ? ago(tier.published_at) : null);
  return h(
    "li",
    { class: "tier", "data-tier": tier.tier },
    h("h3", {}, name, " ", h("code", { class: "small" }, tier.tier)),
    h("dl", { class: "pairs" }, rows),
    build ? drawBuild(build) : null,
    h(
      "div",
      { class: "actions" },
      button(t("operator.rebuild"), (event) => guarded(event, () => rebuild(tier.tier, refresh)), { kind: "small primary", disabled: Boolean(busy), "aria-label": t("operator.rebuildNamed", { tier: name }), "data-key": `rebuild-${tier.tier}` }),
      button(t("operator.rollback"), (event) => guarded(event, () => rollback(tier.tier, name, refresh)), { kind: "small", disabled: Boolean(busy) || tier.can_roll_back === false, "data-key": `rollback-${tier.tier}` }),
    ),
  );
}

function drawBuild(build) {
  const progress = build.progress ?? {};
  return h(
    "div",
    { class: "build" },
    h("p", { class: "facts" }, h("span", {}, t("operator.build"), " ", h("code", {}, build.id)), badge(build.status), progress.total ? h("span", {}, t("stage.progress", { done: number(progress.done), total: number(progress.total) })) : null),
    OPEN.has(build.status) ? meter(progress.done, progress.total, t("operator.build")) : null,
    build.error ? h("p", { class: "small" }, h("code", {}, build.error.code), " ", foreign(build.error.detail)) : null,
  );
}

async function rebuild(tier, refresh) {
  const build = await call(`/v1/admin/tiers/${encodeURIComponent(tier)}/rebuild`, { method: "POST", body: { mode: "full" } });
  watched.set(tier, build.id);
  notice(t("operator.rebuildStarted", { id: build.id }));
  await refresh();
}

async function rollback(tier, name, refresh) {
  if (!(await confirm(t("operator.rollbackTitle", { tier: name }), h("p", {}, t("operator.rollbackText")), t("operator.rollback")))) return;
  await call(`/v1/admin/tiers/${encodeURIComponent(tier)}/rollback`, { method: "POST" });
  watched.delete(tier);
  notice(t("operator.rolledBack", { tier: name }));
  await refresh();
}
