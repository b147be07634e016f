/**
 * What is known of one answer, folded from the events of its stream. Pure: a state and an event in, the next
 * state out, so that what is shown follows from the events alone.
 */

export const TERMINAL = new Set(["answered", "refused", "incomplete", "failed", "cancelled"]);

export function begun({ question = "", mode = "", id = "" } = {}) {
  return { id, question, mode, status: "queued", phase: "sending", sources: [], claims: {}, drafts: {}, text: "", stored: null };
}

/** Apply one event of the stream. An unknown event changes nothing. */
export function applied(state, event, payload) {
  switch (event) {
    case "sources":
      return { ...state, status: "running", phase: "evidence", sources: payload.sources ?? [] };
    case "delta": {
      const text = (state.drafts[payload.claim] ?? "") + payload.text;
      return { ...state, status: "running", phase: "writing", drafts: { ...state.drafts, [payload.claim]: text } };
    }
    case "claim":
      return { ...state, status: "running", phase: "writing", drafts: without(state.drafts, payload.ordinal), claims: settled(state.claims, payload) };
    case "restart":
      return { ...state, phase: "restart", claims: {}, drafts: {} };
    case "done":
      return { ...state, ...ended(payload), drafts: {}, phase: "" };
    default:
      return state;
  }
}

/** The stored answer, which is the truth, in place of what the stream told. */
export function fromStored(answer) {
  const claims = Object.fromEntries(answer.claims.map((c) => [c.ordinal, c]));
  const open = !TERMINAL.has(answer.status);
  return {
    id: answer.id, question: answer.question, mode: answer.mode, status: answer.status, phase: open ? "recall" : "",
    sources: answer.sources, claims: open ? {} : claims, drafts: {}, text: answer.text, stored: answer, ...ended(answer),
  };
}

/** Claims and drafts in the order of the answer. */
export function pieces(state) {
  const ordinals = new Set([...Object.keys(state.claims), ...Object.keys(state.drafts)].map(Number));
  return [...ordinals].sort((a, b) => a - b).map((n) => state.claims[n] ?? { ordinal: n, text: state.drafts[n], draft: true });
}

function ended({ status, text = "", mode, mode_used: modeUsed, mode_reason: modeReason, usage, timings_ms: timings, error, index_generation: generation, policy_version: policyVersion, notices = [] }) {
  return { status, text, mode, modeUsed, modeReason, usage, timings, error, generation, policyVersion, notices };
}

function settled(claims, claim) {
  if (claim.text || claim.erased) return { ...claims, [claim.ordinal]: claim };
  return without(claims, claim.ordinal); // an empty claim was removed by the checks
}

function without(entries, key) {
  const { [key]: _, ...rest } = entries;
  return rest;
}
