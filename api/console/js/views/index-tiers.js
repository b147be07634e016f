/** What each tier serves: vectors, sizes, recall; a rebuild, a rollback. */

import { call } from "../client.js";
import { foreign, h, replace } from "../dom.js";
import { ago, bytes, number, percent } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, confirm, field, guarded, notice, select } from "../ui.js";

export const tiers = {
  name: "tiers",
  kind: "wide",
  everyMs: 2000,
  load: () => call("/v1/admin/tiers"),
  tools: ({ items }, refresh) => button(t("index.rebuildAll"), (event) => guarded(event, () => rebuild("all", refresh)), { kind: "small", disabled: items.some((tier) => tier.open_build), "data-key": "rebuild-all" }),
  draw: ({ items }, refresh) => [summary(items), h("ul", { class: "plain tier-grid" }, items.map((tier) => drawTier(tier, refresh)))],
};

export function tierName(tier) {
  return t(`index.tier.${tier}`, {}, tier);
}

/** What is the same for all tiers: one generation is served as a whole. */
function summary(items) {
  const [first] = items;
  if (!first?.generation) return h("p", { class: "empty" }, t("index.nothing"));
  return h(
    "p",
    { class: "facts" },
    h("span", {}, t("index.generation", { n: number(first.generation) })),
    first.published_at ? h("span", {}, t("index.published", { when: ago(first.published_at) })) : null,
    first.model ? foreign(`${first.model} · ${first.dimension}`) : null,
    first.pending ? h("span", {}, t("index.pending", { n: number(first.pending) })) : null,
    first.previous?.length ? h("span", {}, t("index.kept", { list: first.previous.join(", ") })) : null,
  );
}

function drawTier(tier, refresh) {
  const idle = tier.status === "not_configured";
  return h(
    "li",
    { class: "tier", "data-tier": tier.tier },
    h("div", { class: "document-head" }, h("h3", {}, tierName(tier.tier)), badge(tier.status, t(`index.status.${tier.status}`, {}, tier.status))),
    h("p", { class: "small" }, t(`index.about.${tier.tier}`, {}, "")),
    idle ? null : h("dl", { class: "pairs" }, facts(tier)),
    tier.refused ? h("p", { class: "callout bad" }, foreign(tier.refused)) : null,
    idle ? null : controls(tier, refresh),
  );
}

function facts(tier) {
  const rows = [];
  const add = (words, value) => value && rows.push(h("dt", {}, t(`index.${words}`)), h("dd", {}, value));
  const each = (size) => (tier.vectors ? `${bytes(size)} (${t("index.each", { size: bytes(size / tier.vectors) })})` : bytes(size));
  if (tier.tier !== "lexical") add("vectors", number(tier.vectors));
  add("disk", tier.bytes ? each(tier.bytes) : "");
  add("ram", tier.ram_bytes ? each(tier.ram_bytes) : "");
  add("segments", tier.segments ? [number(tier.segments), kinds(tier)] : "");
  add("dead", tier.dead ? t("index.deadText", { n: number(tier.dead), share: percent(tier.dead / (tier.dead + tier.vectors)) }) : "");
  add("recallMean", typeof tier.recall === "number" ? percent(tier.recall, 1) : "");
  add("effort", (tier.effort ?? 1) !== 1 ? `× ${number(tier.effort, 2)}` : "");
  add("moving", tier.moving ? number(tier.moving) : "");
  return rows;
}

function kinds(tier) {
  const named = Object.entries(tier.kinds ?? {}).map(([kind, n]) => `${kind} ${n}`);
  return named.length ? h("span", { class: "small" }, ` ${named.join(" · ")}`) : null;
}

function controls(tier, refresh) {
  const name = tierName(tier.tier);
  const busy = Boolean(tier.open_build);
  return h(
    "div",
    { class: "actions" },
    button(t("index.rebuild"), (event) => guarded(event, () => rebuild(tier.tier, refresh)), { kind: "small primary", disabled: busy, "aria-label": t("index.rebuildNamed", { tier: name }), "data-key": `rebuild-${tier.tier}` }),
    tier.previous?.length
      ? button(t("index.rollback"), () => rollback(tier, name, refresh), { kind: "small", disabled: busy, "aria-label": t("index.rollbackNamed", { tier: name }), "data-key": `rollback-${tier.tier}` })
      : null,
  );
}

async function rebuild(tier, refresh) {
  const build = await call(`/v1/admin/tiers/${encodeURIComponent(tier)}/rebuild`, { method: "POST", body: { mode: "full" } });
  notice(t("index.rebuildStarted", { id: build.id }));
  await refresh();
}

/** Choose a kept generation, then go back to it. */
async function rollback(tier, name, refresh) {
  const [newest, ...older] = tier.previous.map(String);
  let chosen = newest;
  const box = h("div", {}, h("p", {}, t("index.rollbackText")));
  if (older.length) replace(box, h("p", {}, t("index.rollbackText")), field(t("index.rollbackTo"), select([newest, ...older].map((g) => [g, g]), newest, (g) => (chosen = g))));
  if (!(await confirm(t("index.rollbackTitle", { tier: name }), box, t("index.rollback")))) return;
  await guarded(null, async () => {
    const body = older.length ? { generation: Number(chosen) } : undefined;
    await call(`/v1/admin/tiers/${encodeURIComponent(tier.tier)}/rollback`, { method: "POST", body });
    notice(t("index.rollbackStarted", { tier: name }));
    await refresh();
  });
}
