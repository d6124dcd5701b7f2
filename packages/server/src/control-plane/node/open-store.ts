import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { openPolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import type { PolicyTopic } from "../policy-topic/policy-topic.ts";
import type { RolloutTime } from "../rollouts/rollout-time.ts";
import { createTrialTallies, type TrialTallies } from "../rollouts/tally-trials.ts";
import { finishWithin } from "./finish-within.ts";
import type { PolicyKeeper } from "./policy-keeper.ts";
import { renderStoreUrl } from "./render-store-url.ts";
import { createReopeningStore, type ReopeningStore } from "./reopening-store.ts";
import { checkSeed } from "./seed-store.ts";

/** The policy store that settings name, and policies to start with while it is unavailable. */
export interface OpenedStore {
  readonly store: ReopeningStore;
  /** What was kept of it, on disk or in a Kafka topic. */
  readonly kept: KeptGeneration | undefined;
  /** Whether it answered. */
  readonly reached: boolean;
  /** The name of this process in the store. The id is unique, even across restarts. */
  readonly node: { readonly id: string; readonly name: string };
  /** Counts decisions of both versions during rollouts. */
  readonly tallies: TrialTallies;
  /** Writes pending tallies and closes the store. A store that does not answer does not keep a server from stopping. */
  close(): Promise<void>;
}

/** The newest policies to start with while the store is unavailable. */
export interface KeptGeneration {
  readonly stored: StoredGeneration;
  readonly keptIn: "snapshot" | "topic";
}

export interface OpenStoreOptions {
  readonly url: string;
  readonly settings: Settings;
  readonly keeper: Pick<PolicyKeeper, "recallStored">;
  /** Asked only if the store does not answer. */
  readonly topic?: Pick<PolicyTopic, "recall"> | undefined;
  readonly log: Logger;
  /** How long to wait for a store that is not up yet: with policies to start with, and without. */
  readonly patienceMs?: { readonly kept: number; readonly alone: number } | undefined;
  readonly rolloutTime?: RolloutTime | undefined;
}

const patience = { kept: 3_000, alone: 10_000 } as const;
const againAfterMs = 250;
const recallWithinMs = 5_000;

/**
 * Opens the policy store. Waits for an unavailable one, because a database is often started along with us. After that
 * it starts with the policies kept on disk, and opens the store later. Throws a `SettingError` if nothing was kept, or
 * if waiting cannot help.
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenedStore> {
  const { url, settings, keeper, log, patienceMs = patience, rolloutTime } = options;
  await checkSeed(settings);
  const readPassword = findPasswordFile("storePasswordFile", settings)?.read;
  // A file that cannot be read is reported at once, and not after waiting for the store.
  await readPassword?.();
  const where = renderStoreUrl(url);
  const onDisk = await keeper.recallStored(where);
  let kept: KeptGeneration | undefined = onDisk && { stored: onDisk, keptIn: "snapshot" };
  const store = createReopeningStore({
    kind: url.startsWith("sqlite:") ? "sqlite" : "postgres",
    where,
    open: () => openPolicyStore({ url, readPassword, applicationName: `sluice ${settings.nodeName ?? ""}`.trimEnd() }),
  });
  const name = settings.nodeName ?? hostname();
  // Processes in containers often have the same name and the same number.
  const node = { id: `${name}-${randomBytes(6).toString("hex")}`, name };
  const opened = (reached: boolean): OpenedStore => {
    const time = { nowMs: rolloutTime?.nowMs, flushEveryMs: rolloutTime?.everyMs };
    const tallies = createTrialTallies({ store, node: node.id, log, ...time });
    return { store, kept, reached, node, tallies, close: () => closeStore(store, tallies, log) };
  };
  const startedMs = performance.now();
  // A file exists or not; opening waits for one that another process is creating.
  const isPatient = (): boolean => {
    const waitMs = store.kind === "sqlite" ? 0 : kept === undefined ? patienceMs.alone : patienceMs.kept;
    return performance.now() < startedMs + waitMs;
  };
  let isReported = false;
  for (;;) {
    try {
      await store.open();
      log.info("store.opened", { store: where });
      return opened(true);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const away = error instanceof PolicyStoreUnavailable;
      if (away && !isReported) kept = newer(kept, await options.topic?.recall(recallWithinMs));
      if (!away || !isPatient()) {
        if (away && kept !== undefined) return opened(false);
        await store.close();
        throw new SettingError(["store"], away ? `${reason}; ${whatToDo(url)}` : reason);
      }
      if (!isReported) log.warn("store.unreachable_at_start", { store: where, reason });
      isReported = true;
      await pause(againAfterMs);
    }
  }
}

function newer(kept: KeptGeneration | undefined, found: StoredGeneration | undefined): KeptGeneration | undefined {
  if (found === undefined || found.generation <= (kept?.stored.generation ?? -1)) return kept;
  return { stored: found, keptIn: "topic" };
}

async function closeStore(store: ReopeningStore, tallies: TrialTallies, log: Logger): Promise<void> {
  await finishWithin(tallies.close(), log);
  await store.close();
}

function whatToDo(url: string): string {
  return url.startsWith("sqlite:")
    ? "name a file that this process may write, or an empty one"
    : "start it or correct the address; with --policy-snapshot a server can start without it after its first start, with --push kafka from the topic";
}
