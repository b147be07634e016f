/** Index tiers: what is served, a rebuild with its progress, a rollback. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, number } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, confirm, guarded, meter, notice } from "../ui.js";

const OPEN = new Set(["queued", "running"]);
const watched = new Map(); // tier → id of the build to show beside it

export const tiers = {
  name: "tiers",
  kind: "wide",
  everyMs: 1500,
  async load() {
    const { items } = await call("/v1/admin/tiers");
    for (const tier of items) if (tier.open_build) watched.set(tier.tier, tier.open_build);
    const builds = {};
    for (const [tier, id] of watched) builds[tier] = await call(`/v1/admin/builds/${encodeURIComponent(id)}`);
    return { items, builds };
  },
  draw: ({ items, builds }, refresh) => h("ul", { class: "plain tiers" }, items.map((tier) => drawTier(tier, builds[tier.tier], refresh))),
};

function drawTier(tier, build, refresh) {
  const name = t(`operator.tier.${tier.tier}`, {}, tier.tier);
  const idle = tier.status === "not_configured";
  return h(
    "li",
    { class: "tier", "data-tier": tier.tier },
    h("div", { class: "document-head" }, h("h3", {}, name), badge(tier.status, t(`operator.tierStatus.${tier.status}`, {}, tier.status))),
    idle ? null : h("dl", { class: "pairs" }, facts(tier)),
    tier.refused ? h("p", { class: "callout bad" }, foreign(tier.refused)) : null,
    build ? drawBuild(build) : null,
    idle ? null : controls(tier, name, Boolean(tier.open_build) || OPEN.has(build?.status), refresh),
  );
}

function facts(tier) {
  const rows = [];
  const add = (words, value) => value && rows.push(h("dt", {}, t(`operator.${words}`)), h("dd", {}, value));
  add("generation", String(tier.generation));
  add("vectors", number(tier.vectors));
  add("segments", number(tier.segments));
  add("pending", tier.pending ? number(tier.pending) : "");
  add("model", tier.model ? foreign(tier.dimension ? `${tier.model} · ${tier.dimension}` : tier.model) : "");
  add("published", tier.published_at ? ago(tier.published_at) : "");
  add("kept", tier.previous.join(", "));
  return rows;
}

function controls({ tier, previous }, name, busy, refresh) {
  const again = (event) => guarded(event, () => rebuild(tier, refresh));
  const back = (event) => guarded(event, () => rollback(tier, name, refresh));
  return h(
    "div",
    { class: "actions" },
    button(t("operator.rebuild"), again, { kind: "small primary", disabled: busy, "aria-label": t("operator.rebuildNamed", { tier: name }), "data-key": `rebuild-${tier}` }),
    button(t("operator.rollback"), back, { kind: "small", disabled: busy || !previous.length, "data-key": `rollback-${tier}` }),
  );
}

function drawBuild(build) {
  const { progress } = build;
  return h(
    "div",
    { class: "build" },
    h("p", { class: "facts" }, h("span", {}, t(`operator.build.${build.mode}`, {}, build.mode)), h("code", {}, build.id), badge(build.status), progress.total ? h("span", {}, t("stage.progress", { done: number(progress.done), total: number(progress.total) })) : null),
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
  const build = await call(`/v1/admin/tiers/${encodeURIComponent(tier)}/rollback`, { method: "POST" });
  watched.set(tier, build.id);
  notice(t("operator.rollbackStarted", { tier: name }));
  await refresh();
}
