/**
 * Pages of the original as pictures, with the cited places drawn over them. The picture comes through the door
 * that needs the key, so it is drawn on a canvas; no address of it exists that a page could embed.
 */

import { open as fetchOpen } from "../client.js";
import { h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { button, problem, spinner } from "../ui.js";

const KEPT = 6; // pictures
const MOST_PIXELS = 2000;

export function hasPages({ media_type: type, pages }) {
  return pages > 0 && (type === "application/pdf" || type.startsWith("image/"));
}

/**
 * @param {string} path the document's door
 * @param {{name: string, pages: number}} document_
 * @param {number} version
 */
export function pageView(path, document_, version) {
  const bar = h("div", { class: "page-bar" });
  const sheet = h("div", { class: "sheet" });
  const node = h("div", { class: "reader-text page-view", tabindex: "0" }, bar, sheet);
  const pictures = new Map();
  let spots = Promise.resolve({ quote: [], passage: [] });
  let page = 1;
  let wanted = 0; // of the newest request: an older one that arrives later is dropped
  let ready = false;

  async function show(number) {
    page = Math.min(Math.max(1, number), document_.pages);
    wanted += 1;
    const mine = wanted;
    drawBar();
    if (!pictures.has(page)) replace(sheet, spinner());
    try {
      const [picture, marked] = await Promise.all([pictureOf(page), spots]);
      if (mine === wanted) drawSheet(picture, marked);
    } catch (error) {
      if (mine === wanted) replace(sheet, problem(error, { retry: () => show(page) }));
    }
  }

  async function pictureOf(number) {
    const known = pictures.get(number);
    if (known) return known;
    const width = Math.min(MOST_PIXELS, Math.max(600, Math.round((node.clientWidth || 700) * window.devicePixelRatio)));
    const response = await fetchOpen(`${path}/pages/${number}`, { query: { version, width } });
    const size = { width: Number(response.headers.get("X-Page-Width")), height: Number(response.headers.get("X-Page-Height")) };
    const made = { ...size, bitmap: await createImageBitmap(await response.blob()) };
    pictures.set(number, made);
    if (pictures.size > KEPT) pictures.delete(pictures.keys().next().value);
    return made;
  }

  function drawBar() {
    const turn = (by) => () => show(page + by);
    bar.hidden = document_.pages < 2;
    replace(
      bar,
      button("‹", turn(-1), { kind: "icon", "aria-label": t("reader.pageBefore"), disabled: page <= 1, "data-key": "page-before" }),
      h("span", { class: "page-number", "aria-live": "polite" }, t("reader.pageOf", { n: page, total: document_.pages })),
      button("›", turn(1), { kind: "icon", "aria-label": t("reader.pageAfter"), disabled: page >= document_.pages, "data-key": "page-after" }),
    );
  }

  function drawSheet({ bitmap, width, height }, marked) {
    const canvas = h("canvas", { width: bitmap.width, height: bitmap.height, role: "img", "aria-label": t("reader.pagePicture", { n: page, name: document_.name }) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    const boxes = ["passage", "quote"].flatMap((kind) =>
      marked[kind].filter((p) => p.page === page).flatMap((p) => p.boxes.map((box) => drawBox(box, kind, width, height))),
    );
    replace(sheet, canvas, boxes);
    (sheet.querySelector(".place-box.of-quote") ?? sheet.querySelector(".place-box"))?.scrollIntoView({ block: "center" });
  }

  return {
    node,
    /** Show these places from now on, on the page where they begin. */
    mark(places, guess) {
      spots = places;
      page = guess || 1;
      ready = false;
    },
    /** Called when the view comes into sight. */
    async open() {
      if (!ready) {
        ready = true;
        drawBar();
        replace(sheet, spinner());
        const { quote, passage } = await spots.catch(() => ({ quote: [], passage: [] }));
        page = (quote.length ? quote : passage)[0]?.page ?? page;
      }
      await show(page);
    },
  };
}

/** Shares of the sheet, so that the box stays in place at any width. Set by script: the page's policy allows no style attribute. */
function drawBox({ x0, top, x1, bottom }, kind, width, height) {
  const node = h("div", { class: `place-box of-${kind}` });
  const share = (value, whole) => `${((100 * value) / whole).toFixed(3)}%`;
  Object.assign(node.style, { left: share(x0, width), top: share(top, height), width: share(x1 - x0, width), height: share(bottom - top, height) });
  return node;
}
