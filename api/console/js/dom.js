/**
 * Build elements from values. Strings only ever become text nodes, so nothing that a document, a file name
 * or an answer contains is read as markup. There is no innerHTML anywhere in the console.
 */

const AS_PROPERTY = new Set(["value", "checked", "disabled", "hidden", "selected", "indeterminate", "open"]);

/**
 * @param {string} tag
 * @param {Object} attributes functions under `on…` become listeners; null, undefined and false are left out
 * @param {...(Node|string|number|Array|null|undefined|false)} children
 */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (AS_PROPERTY.has(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replace what a node holds. The focused control keeps the focus if it comes back with the same data-key, and
 * details that a person opened stay open if they come back with the same data-keep.
 */
export function replace(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  const opened = [...node.querySelectorAll("details[open][data-keep]")].map((d) => d.dataset.keep);
  node.replaceChildren();
  append(node, children);
  for (const kept of opened) node.querySelector(`details[data-keep="${CSS.escape(kept)}"]`)?.setAttribute("open", "");
  if (focused) node.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  return node;
}

/** Text of unknown direction and origin (file names, titles), isolated so that it cannot reorder its neighbours. */
export function foreign(text, attributes = {}) {
  return h("bdi", attributes, text);
}

/**
 * Run `action` now and then every `ms` until it returns false or the returned function is called.
 * A hidden page is left alone, and a call never overlaps the one before it.
 */
export function poll(action, ms) {
  let stopped = false;
  let timer = 0;
  async function tick() {
    if (stopped) return;
    const again = document.hidden ? true : await action();
    if (again !== false && !stopped) timer = setTimeout(tick, ms);
  }
  tick();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
