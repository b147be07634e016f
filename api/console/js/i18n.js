/** The two languages of the console. Both dictionaries hold the same keys; a test keeps them so. */

import { en } from "./strings-en.js";
import { zh } from "./strings-zh.js";

const DICTIONARIES = { en, zh };
const STORED = "geo.language";

let current = localStorage.getItem(STORED) ?? (navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
if (!(current in DICTIONARIES)) current = "en";
document.documentElement.lang = tag();

export function language() {
  return current;
}

/** BCP 47 tag, for `lang` attributes and Intl. */
export function tag() {
  return current === "zh" ? "zh-CN" : "en";
}

export function setLanguage(next) {
  current = next;
  localStorage.setItem(STORED, next);
  document.documentElement.lang = tag();
}

/** The words for `key`, with `{name}` replaced. An unknown key shows `fallback`, or itself. */
export function t(key, values = {}, fallback = key) {
  const words = DICTIONARIES[current][key] ?? fallback;
  return words.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether a key has words of its own. */
export function known(key) {
  return key in DICTIONARIES[current];
}
