/** Builds: how far each has come and how long it will take; pause, resume, cancel. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, moment, number } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, confirm, guarded, meter } from "../ui.js";
import { tierName } from "./index-tiers.js";

const OPEN = new Set(["queued", "running", "paused"]);
const SHOWN = 10;

export const builds = {
  name: "builds",
  everyMs: 1500,
  load: () => call("/v1/admin/builds", { query: { limit: SHOWN } }),
  draw({ items }, refresh) {
    if (!items.length) return h("p", { class: "empty" }, t("index.builds.none"));
    return h("ul", { class: "plain builds" }, items.map((build) => drawBuild(build, refresh)));
  },
};

export function buildName({ mode, tier }) {
  return t(`index.build.${mode}`, { tier: tierName(tier) }, `${mode} · ${tier}`);
}

function drawBuild(build, refresh) {
  const { progress } = build;
  const open = OPEN.has(build.status);
  return h(
    "li",
    { class: "build", "data-build": build.id, "data-status": build.status },
    h("div", { class: "document-head" }, h("b", {}, buildName(build)), badge(build.status)),
    h(
      "p",
      { class: "facts" },
      h("time", { datetime: build.created_at, title: moment(build.created_at) }, ago(build.created_at)),
      open && progress.total ? h("span", {}, t("stage.progress", { done: number(progress.done), total: number(progress.total) })) : null,
      open && typeof build.eta_s === "number" ? h("span", {}, t("index.build.eta", { time: duration(build.eta_s) })) : null,
      build.to_generation ? h("span", {}, t("index.generation", { n: number(build.to_generation) })) : null,
      build.model ? foreign(build.model) : null,
    ),
    open ? meter(progress.done, build.status === "paused" ? progress.total || 1 : progress.total, buildName(build)) : null,
    build.error ? h("p", { class: "small" }, h("code", {}, build.error.code), " ", foreign(build.error.detail)) : null,
    Object.keys(build.stats).length ? stats(build) : null,
    open ? controls(build, refresh) : null,
  );
}

function duration(seconds) {
  return seconds < 90 ? t("index.seconds", { n: number(seconds) }) : t("index.minutes", { n: number(seconds / 60) });
}

function stats(build) {
  const rows = Object.entries(build.stats).flatMap(([name, value]) => [h("dt", {}, h("code", {}, name)), h("dd", {}, shown(value))]);
  return h("details", { "data-keep": `stats-${build.id}` }, h("summary", { class: "small" }, t("index.build.stats")), h("dl", { class: "pairs" }, rows));
}

function shown(value) {
  if (typeof value === "number") return number(value, 3);
  return foreign(typeof value === "object" ? JSON.stringify(value) : String(value), { class: "small" });
}

function controls(build, refresh) {
  const act = (action) => (event) => guarded(event, () => steer(build, action, refresh));
  const named = (action) => ({ "aria-label": t(`index.build.${action}Named`, { name: buildName(build) }), "data-key": `${action}-${build.id}` });
  return h(
    "div",
    { class: "actions" },
    build.status === "paused" ? button(t("index.build.resume"), act("resume"), { kind: "small primary", ...named("resume") }) : button(t("index.build.pause"), act("pause"), { kind: "small", ...named("pause") }),
    button(t("index.build.cancel"), act("cancel"), { kind: "small danger-quiet", ...named("cancel") }),
  );
}

async function steer(build, action, refresh) {
  if (action === "cancel" && !(await confirm(t("index.build.cancelTitle", { name: buildName(build) }), h("p", {}, t("index.build.cancelText")), t("index.build.cancel")))) return;
  await call(`/v1/admin/builds/${encodeURIComponent(build.id)}/${action}`, { method: "POST" });
  await refresh();
}
