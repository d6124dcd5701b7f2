import type { Logger } from "../../observe/telemetry/logger.ts";
import { withDeadline } from "../../with-deadline.ts";

const closeWithinMs = 3_000;

/**
 * Waits a moment for pending writes to the policy store. A store that does not answer does not keep a server from
 * stopping.
 */
export async function finishWithin(work: Promise<unknown>, log: Pick<Logger, "warn">): Promise<void> {
  const late = (): Error => new Error("the policy store does not answer");
  await withDeadline(work, closeWithinMs, late).catch((error: unknown) =>
    log.warn("store.final_report_failed", { reason: String(error) }),
  );
}
