/** Remarks on how a document was read, in the reader's language, with the pages they concern. */

import { known, t } from "./i18n.js";

const MOST_RANGES = 6;

/** @param {{code: string, detail: string, pages?: number[]}|string} remark */
export function remarkWords(remark) {
  if (typeof remark === "string") return remark;
  const words = known(`warning.${remark.code}`) ? t(`warning.${remark.code}`) : (remark.detail ?? remark.message ?? JSON.stringify(remark));
  return remark.pages?.length ? `${words} ${t("documents.onPages", { pages: ranges(remark.pages) })}` : words;
}

/** `1–3, 7` of page numbers in ascending order. */
export function ranges(pages) {
  const found = [];
  for (const page of pages) {
    const last = found.at(-1);
    if (last && page === last[1] + 1) last[1] = page;
    else found.push([page, page]);
  }
  const words = found.slice(0, MOST_RANGES).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  return words.join(", ") + (found.length > MOST_RANGES ? ", …" : "");
}
