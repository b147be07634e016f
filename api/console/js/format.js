/** Numbers and times in the reader's language. */

import { tag, t } from "./i18n.js";

export function bytes(count) {
  if (!Number.isFinite(count)) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let power = 0;
  while (count >= 1024 && power < units.length - 1) {
    count /= 1024;
    power += 1;
  }
  return `${number(count, power && count < 100 ? 1 : 0)} ${units[power]}`;
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(tag(), { maximumFractionDigits: digits }).format(value);
}

export function percent(share, digits = 0) {
  return new Intl.NumberFormat(tag(), { style: "percent", maximumFractionDigits: digits }).format(share);
}

/** A score on a route's own scale: three significant digits. */
export function score(value) {
  return typeof value === "number" ? new Intl.NumberFormat(tag(), { maximumSignificantDigits: 3 }).format(value) : "–";
}

export function milliseconds(ms) {
  if (typeof ms !== "number") return "–";
  return ms < 1000 ? `${number(ms, ms < 10 ? 1 : 0)} ms` : `${number(ms / 1000, ms < 10000 ? 2 : 1)} s`;
}

const MINUTE = 60;
const STEPS = [
  [MINUTE, 1, "second"],
  [60 * MINUTE, MINUTE, "minute"],
  [24 * 60 * MINUTE, 60 * MINUTE, "hour"],
  [7 * 24 * 60 * MINUTE, 24 * 60 * MINUTE, "day"],
];

/** "3 minutes ago" for the last week, a date before that. */
export function ago(iso) {
  if (!iso) return "–";
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 5) return t("time.now");
  for (const [limit, size, unit] of STEPS) {
    if (seconds < limit) {
      return new Intl.RelativeTimeFormat(tag(), { numeric: "auto" }).format(-Math.floor(seconds / size), unit);
    }
  }
  return new Intl.DateTimeFormat(tag(), { dateStyle: "medium" }).format(new Date(iso));
}

export function moment(iso) {
  if (!iso) return "–";
  return new Intl.DateTimeFormat(tag(), { dateStyle: "medium", timeStyle: "medium" }).format(new Date(iso));
}
