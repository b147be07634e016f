/**
 * Server-sent events over fetch, because EventSource cannot send an Authorization header.
 * The parser follows the WHATWG event stream format: CR, LF and CRLF end a line, `data` lines join with LF.
 */

import { open } from "./client.js";

const MAX_ATTEMPTS = 8;
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;

/** @returns {(chunk: string) => Array<{event: string, data: string, id: string}>} feed it text in any pieces */
export function parser() {
  let rest = "";
  let event = "";
  let data = [];
  let id = "";
  return (chunk) => {
    const found = [];
    rest += chunk;
    for (;;) {
      const end = rest.search(/\r\n|\n|\r/);
      if (end < 0) break;
      if (rest[end] === "\r" && end === rest.length - 1) break; // a line feed may follow in the next piece
      const line = rest.slice(0, end);
      rest = rest.slice(end + (rest[end] === "\r" && rest[end + 1] === "\n" ? 2 : 1));
      if (line === "") {
        if (data.length) found.push({ event: event || "message", data: data.join("\n"), id });
        event = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment keeps the connection alive
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
      else if (field === "id" && !value.includes("\0")) id = value;
    }
    return found;
  };
}

/**
 * Follow a query until its `done` event, across dropped connections (Last-Event-ID).
 * @param {string} queryId
 * @param {(event: string, payload: Object) => void} onEvent
 * @param {{signal: AbortSignal, onDrop?: (attempt: number) => void}} options
 * @returns {Promise<boolean>} whether `done` was seen
 */
export async function follow(queryId, onEvent, { signal, onDrop = () => {} }) {
  let lastId = "";
  for (let attempt = 0; attempt < MAX_ATTEMPTS; ) {
    try {
      const response = await open(`/v1/queries/${encodeURIComponent(queryId)}/events`, {
        signal,
        headers: { Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) },
      });
      for await (const entry of entries(response.body)) {
        attempt = 0;
        if (entry.id) lastId = entry.id;
        onEvent(entry.event, JSON.parse(entry.data));
        if (entry.event === "done") return true;
      }
    } catch (error) {
      if (error.name === "AbortError") return false;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    attempt += 1;
    onDrop(attempt);
    await pause(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)), signal);
    if (signal.aborted) return false;
  }
  return false;
}

async function* entries(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const feed = parser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* feed(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
