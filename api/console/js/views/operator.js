/** Operation: jobs, the engine, keys. */

import { t } from "../i18n.js";
import { engine } from "./operator-engine.js";
import { jobs } from "./operator-jobs.js";
import { keys } from "./operator-keys.js";
import { mountPanels } from "./panels.js";

const PANELS = [
  { ...engine, heading: "operator.engine", role: "operator" },
  { ...jobs, heading: "operator.jobs", role: "operator" },
  { ...keys, heading: "operator.keys", role: "admin" },
];

export function mount(root) {
  return mountPanels(root, t("operator.title"), "", PANELS);
}
