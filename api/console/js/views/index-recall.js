/** Recall of live questions over time, per tier, against the floor. */

import { lineChart } from "../chart.js";
import { call } from "../client.js";
import { h } from "../dom.js";
import { moment, number, percent } from "../format.js";
import { t, tag } from "../i18n.js";
import { select } from "../ui.js";
import { tierName } from "./index-tiers.js";

const SPANS = { 1: "hour", 24: "day", 168: "week", 720: "month" };
const state = { hours: "24" };

export const recall = {
  name: "recall",
  everyMs: 10_000,
  load: async () => ({ hours: state.hours, ...(await call("/v1/admin/recall", { query: { hours: state.hours, points: 40 } })) }),
  tools(found, refresh) {
    const choose = (hours) => ((state.hours = hours), refresh());
    return select(Object.entries(SPANS).map(([hours, span]) => [hours, t(`index.recall.${span}`)]), found.hours, choose, { "aria-label": t("index.recall.span"), "data-key": "recall-span" });
  },
  draw(found) {
    const seen = found.tiers.filter((tier) => tier.points.length);
    const about = h("p", { class: "small" }, t("index.recall.about", { share: percent(found.sample_share, 1), floor: percent(found.floor) }));
    if (!seen.length) return [about, h("p", { class: "empty" }, t("index.recall.none"))];
    return [chart(found, seen), h("ul", { class: "plain legend" }, found.tiers.map((tier) => legend(tier, found.floor))), about];
  },
};

function chart(found, seen) {
  const until = Date.now();
  const series = seen.map((tier) => ({
    name: tier.tier,
    kind: tier.tier,
    points: tier.points.map((p) => ({ at: Date.parse(p.at), share: p.recall, words: words(tier, p) })),
  }));
  return lineChart(series, {
    width: Math.min(560, window.innerWidth - 70),
    from: until - Number(found.hours) * 3_600_000,
    until,
    floor: found.floor,
    label: t("index.recall.label"),
    floorLabel: t("index.recall.floor", { floor: percent(found.floor) }),
    percent: (share) => percent(share, 1),
    time: (at) => shortly(new Date(at), Number(found.hours)),
  });
}

/** A time as precise as the stretch that is shown. */
function shortly(at, hours) {
  const style = hours > 48 ? { month: "short", day: "numeric" } : { weekday: "short", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(tag(), style).format(at);
}

function words(tier, point) {
  return t("index.recall.point", { tier: tierName(tier.tier), recall: percent(point.recall, 1), lowest: percent(point.lowest, 1), n: number(point.samples), when: moment(point.at) });
}

function legend(tier, floor) {
  const low = tier.mean !== null && tier.mean < floor;
  const told = tier.mean === null ? t("index.recall.noSamples") : t("index.recall.mean", { recall: percent(tier.mean, 1), n: number(tier.samples) });
  return h("li", { class: tier.tier, "data-recall": tier.tier }, h("span", { class: "swatch", "aria-hidden": "true" }), h("b", {}, tierName(tier.tier)), " ", h("span", { class: low ? "low" : "" }, told));
}
