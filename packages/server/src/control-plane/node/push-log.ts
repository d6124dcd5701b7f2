import type { Logger } from "../../observe/telemetry/logger.ts";

/** Tells when nodes stop hearing of changes, and when they do again; not of every attempt. */
export interface PushLog {
  connected(): void;
  lost(reason: string): void;
  /** They never will. */
  refused(reason: string): void;
}

export function createPushLog(log: Logger, at: string): PushLog {
  let lost = false;
  return {
    connected(): void {
      if (lost) log.info({ at }, "changes of policies are heard of at once again");
      else log.debug({ at }, "changes of policies are heard of at once");
      lost = false;
    },
    lost(reason): void {
      if (lost) return;
      lost = true;
      log.warn({ at, reason }, "changes of policies are not heard of at once; they are looked for every second");
    },
    refused(reason): void {
      log.warn(
        { at, reason },
        "the policy store's server knows no LISTEN: changes of policies are looked for every second; " +
          "with SLUICE_PUSH=redis (--push) nodes that share Valkey or Redis hear of them at once",
      );
    },
  };
}
