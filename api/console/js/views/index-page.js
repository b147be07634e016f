/** The index: its tiers, their recall, builds, and moves of documents between them. For operators. */

import { t } from "../i18n.js";
import { builds } from "./index-builds.js";
import { moves } from "./index-moves.js";
import { placement } from "./index-placement.js";
import { recall } from "./index-recall.js";
import { tiers } from "./index-tiers.js";
import { mountPanels } from "./panels.js";

const PANELS = [tiers, recall, builds, placement, moves].map((panel) => ({ ...panel, heading: `index.${panel.name}`, role: "operator" }));

export function mount(root) {
  return mountPanels(root, t("index.title"), t("index.intro"), PANELS);
}
