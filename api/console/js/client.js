/** Calls to the doors. Every failure becomes a `ProblemError` that carries the problem document's words. */

import { t } from "./i18n.js";
import { session } from "./session.js";

export class ProblemError extends Error {
  constructor({ status = 0, title, detail = "", code = "", request_id: requestId = "", errors = [], retryAfter = null }) {
    super(title);
    Object.assign(this, { status, title, detail, code, requestId, errors, retryAfter });
  }
}

/** Told when a door answers 401, so that the shell can ask for a key again. */
export const onUnauthenticated = { handler: () => {} };

export function headers(extra = {}) {
  return { Authorization: `Bearer ${session.key}`, ...extra };
}

function address(path, query) {
  const given = Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

function unreachable() {
  return new ProblemError({ title: t("error.network.title"), detail: t("error.network.detail"), code: "network" });
}

/** A problem document, or its closest likeness when something else answered (a proxy, a dropped body). */
export function problemFrom(status, body, header = () => null) {
  const fields = body && typeof body === "object" ? body : {};
  const problem = new ProblemError({
    ...fields,
    status,
    title: t(`problem.${fields.code}`, {}, fields.title ?? t("error.http", { status })),
    request_id: fields.request_id ?? header("X-Request-ID") ?? "",
    retryAfter: Number(header("Retry-After")) || null,
  });
  if (status === 401) onUnauthenticated.handler(problem);
  return problem;
}

/** `fetch` with the key; resolves to a Response that is ok. */
export async function open(path, { method = "GET", query, body, signal, headers: extra } = {}) {
  let response;
  try {
    response = await fetch(address(path, query), {
      method,
      signal,
      cache: "no-store",
      headers: headers({ ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...extra }),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!response.ok) {
    const parsed = await response.json().catch(() => null);
    throw problemFrom(response.status, parsed, (name) => response.headers.get(name));
  }
  return response;
}

/** `open`, with the JSON of the answer (null where there is none). */
export async function call(path, options) {
  const response = await open(path, options);
  if (response.status === 204) return null;
  return response.json().catch(() => null);
}

/** All pages of a list, up to `most` entries. */
export async function all(path, query = {}, most = 1000) {
  const items = [];
  let cursor = null;
  do {
    const page = await call(path, { query: { ...query, cursor } });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && items.length < most);
  return items;
}

/**
 * Upload one file. XMLHttpRequest, because fetch does not report how far a request body has gone.
 * @returns {{done: Promise<{status: number, body: Object}>, abort: () => void}}
 */
export function upload(path, form, onProgress) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded, event.total);
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onload = () => {
      let body = null;
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // not JSON: the status says enough
      }
      if (request.status >= 200 && request.status < 300) resolve({ status: request.status, body });
      else reject(problemFrom(request.status, body, (name) => request.getResponseHeader(name)));
    };
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.send(form);
  });
  return { done, abort: () => request.abort() };
}

/** Fetch a file behind the key and hand it to the browser's download. */
export async function download(path, name, query) {
  const response = await open(path, { query });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
