import type { PolicyStore } from "@sluice/sql";
import { SluiceError } from "sluice";
import { renderPolicyProblem } from "sluice/internal";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { sluiceItself } from "../audit/audit-entry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { defaultPolicyId } from "../documents/read-documents.ts";
import { isStoreUnavailable } from "./is-store-unavailable.ts";

/** Fills a store that was never written to from a file. Of several nodes that start at once, one does it. */
export async function seedStore(
  control: ControlPlane,
  settings: Settings,
  store: Pick<PolicyStore, "readPulse" | "where">,
  log: Logger,
): Promise<void> {
  if (settings.seed === undefined || (await store.readPulse()).generation > 0) return;
  const text = (await readSettingFile("seed", settings)) ?? "";
  try {
    const { value } = await control.configuration.import(sluiceItself, text, {
      mode: "merge",
      expected: 0,
      why: "the first start",
    });
    log.info(
      "store.seeded", // Counted as everywhere: without the default policy.
      {
        store: store.where,
        path: settings.seed,
        policies: value.created.filter((id) => id !== defaultPolicyId).length,
      },
    );
  } catch (error) {
    if (error instanceof SluiceError && error.code === "version_conflict") return;
    if (isStoreUnavailable(error)) throw error;
    const file = settings.seed;
    const problems = error instanceof SluiceError ? error.problems : [];
    const list = problems.map((problem) => {
      const place = problem.place && { ...problem.place, file };
      return `\n  ${renderPolicyProblem({ ...problem, ...(place && { place }) })}`;
    });
    const why = list.length > 0 ? list.join("") : ` ${error instanceof Error ? error.message : error}`;
    throw new SettingError(["seed"], `${file} cannot be used:${why}`);
  }
}
