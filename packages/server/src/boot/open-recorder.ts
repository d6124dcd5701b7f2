import { hostname } from "node:os";
import type { CounterStore, Limiter } from "sluice";
import type { LimiterWatch } from "sluice/internal";
import { policySetBody, withoutTrials } from "../data-plane/transports/http/policy-body.ts";
import { Recorder } from "../observe/recording/recorder.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import { workerPath } from "../observe/usage-events/open-sink.ts";
import { SettingError } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { version } from "../version.ts";

export interface OpenRecorderOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly limiter: Limiter;
  readonly watch: LimiterWatch;
  /** The counters whose instants are recorded, asked when a recording begins. */
  readonly findStore: () => CounterStore;
  readonly worker: number | undefined;
}

/** Can record what this process decides; records nothing yet. */
export function openRecorder({ settings, findStore, ...rest }: OpenRecorderOptions): Recorder {
  return new Recorder({
    ...rest,
    get store(): CounterStore {
      return findStore();
    },
    ...{ version, ipv6PrefixBits: settings.ipv6PrefixBits, renderPolicies: (set) => policySetBody(withoutTrials(set)) },
    node: settings.nodeName ?? hostname(),
    workers: rest.worker === undefined ? undefined : settings.workers,
  });
}

/** Starts the recording that settings ask for, before the first caller is let in. Each of several workers writes a file. */
export async function startRecording(
  recorder: Recorder,
  settings: Settings,
  worker: number | undefined,
): Promise<void> {
  const { record, recordForMs: forMs, recordBytes: maxBytes } = settings;
  const { recordShare: share, recordShareBy: shareBy, recordHash: hashed } = settings;
  if (record === undefined) return;
  const path = workerPath(record, worker);
  await recorder.start({ path, forMs, maxBytes, share, shareBy, hashed }).catch((error: Error) => {
    throw new SettingError(["record"], `cannot be written: ${error.message}`);
  });
}
