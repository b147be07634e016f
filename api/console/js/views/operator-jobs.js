/** Jobs by state, and another try for those that failed. */

import { call } from "../client.js";
import { foreign, h } from "../dom.js";
import { ago, moment } from "../format.js";
import { t } from "../i18n.js";
import { badge, button, guarded, notice, select } from "../ui.js";

const STATES = ["", "waiting", "running", "failed", "done", "cancelled"];
const state = { filter: "" };

export const jobs = {
  name: "jobs",
  kind: "wide",
  everyMs: 2000,
  load: async () => ({ filter: state.filter, ...(await call("/v1/admin/jobs", { query: { status: state.filter, limit: 50 } })) }),
  tools(found, refresh) {
    const failed = found.items.filter((j) => j.status === "failed");
    const choose = (value) => ((state.filter = value), refresh());
    return [
      failed.length ? button(t("operator.jobs.retryAll", { n: failed.length }), (event) => guarded(event, () => retry(failed, refresh)), { kind: "small" }) : null,
      select(STATES.map((s) => [s, s ? t(`status.${s}`) : t("documents.filter.all")]), found.filter, choose, { "aria-label": t("operator.jobs.state"), "data-key": "jobs-state" }),
    ];
  },
  draw(found, refresh) {
    if (!found.items.length) return h("p", { class: "empty" }, t("operator.jobs.none"));
    const columns = ["state", "task", "subject", "attempts", "progress", "created", "error"];
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": t("operator.jobs") },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, t(`operator.jobs.${c}`))))),
        h("tbody", {}, found.items.map((job) => drawJob(job, refresh))),
      ),
    );
  },
};

function drawJob(job, refresh) {
  const { progress } = job;
  return h(
    "tr",
    { "data-id": job.id, "data-status": job.status },
    h("td", {}, badge(job.status)),
    h("td", {}, h("code", {}, job.task)),
    h("td", {}, h("code", { class: "small" }, job.subject_id)),
    h("td", { class: "figure" }, job.attempts),
    h("td", { class: "figure" }, progress?.total ? t("stage.progress", progress) : "–"),
    h("td", {}, h("time", { datetime: job.created_at, title: moment(job.created_at) }, ago(job.created_at))),
    h(
      "td",
      { class: "job-error" },
      job.error ? [h("code", {}, job.error.code), " ", foreign(job.error.detail, { class: "small" })] : "–",
      job.status === "failed" ? [" ", button(t("operator.jobs.retry"), (event) => guarded(event, () => retry([job], refresh)), { kind: "small", "data-key": `retry-${job.id}` })] : null,
    ),
  );
}

/** Retry each; what cannot be retried (its subject moved on) does not hold up the others. */
async function retry(failed, refresh) {
  const outcomes = await Promise.allSettled(failed.map((job) => call(`/v1/admin/jobs/${encodeURIComponent(job.id)}/retry`, { method: "POST" })));
  const refused = outcomes.filter((o) => o.status === "rejected").map((o) => o.reason);
  const done = outcomes.length - refused.length;
  if (!refused.length) notice(t("operator.jobs.retried", { n: done }));
  else if (!done && refused.length === 1) notice(refused[0]);
  else notice(t("operator.jobs.retriedSome", { n: done, m: refused.length, why: refused[0].detail || refused[0].message }), { lasting: true });
  await refresh();
}
