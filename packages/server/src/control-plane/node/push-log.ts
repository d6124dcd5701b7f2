import type { Logger } from "../../observe/telemetry/logger.ts";

/** Logs when nodes stop receiving announcements of changes, and when they do again; not every attempt. */
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
      if (lost) log.info("push.recovered", { at });
      else log.debug("push.connected", { at });
      lost = false;
    },
    lost(reason): void {
      if (lost) return;
      lost = true;
      log.warn("push.lost", { at, reason });
    },
    refused(reason): void {
      log.warn("push.unsupported", { at, reason });
    },
  };
}
