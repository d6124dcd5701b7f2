import { existsSync } from "node:fs";
import type { PolicyStore } from "@sluice/sql";
import { SluiceError } from "sluice";
import { renderPolicyProblem } from "sluice/internal";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { sluiceItself } from "../audit/audit-entry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { planImport } from "../documents/plan-import.ts";
import { defaultPolicyId } from "../documents/read-documents.ts";
import { readImport } from "../documents/read-import.ts";
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
    throw unusable(settings.seed, error);
  }
}

/**
 * Refuses a seed that cannot be used while the file of the store does not exist yet, so that none is created for it. A store that
 * exists may be filled already, and then its seed is not read.
 */
export async function checkSeed(settings: Settings): Promise<void> {
  const { seed, store = "", config, ipv6PrefixBits } = settings;
  const file = store.startsWith("sqlite:") ? store.slice("sqlite:".length).replace(/^\/\//, "") : "";
  if (seed === undefined || file === "" || file === ":memory:" || existsSync(file)) return;
  const body = (await readSettingFile("seed", settings)) ?? "";
  try {
    // It may refer to policies in files, which are read elsewhere.
    if (config !== undefined) readImport(body);
    else planImport({ body, mode: "merge", stored: nothingStored, nowMs: Date.now(), ipv6PrefixBits });
  } catch (error) {
    throw unusable(seed, error);
  }
}

const nothingStored = { policies: [], rollouts: [], subjects: new Map() };

function unusable(file: string, error: unknown): SettingError {
  const problems = error instanceof SluiceError ? error.problems : [];
  const list = problems.map((problem) => {
    const place = problem.place && { ...problem.place, file };
    return `\n  ${renderPolicyProblem({ ...problem, ...(place && { place }) })}`;
  });
  const why = list.length > 0 ? list.join("") : ` ${error instanceof Error ? error.message : error}`;
  return new SettingError(["seed"], `${file} cannot be used:${why}`);
}
