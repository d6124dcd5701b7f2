import { generationChannel } from "@sluice/sql";
import { openPostgresListener, type PostgresListenerOptions } from "@sluice/sql/notices";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type Push, parseGeneration } from "./push.ts";
import { createPushLog } from "./push-log.ts";

/**
 * Push by LISTEN. The NOTIFY is part of each change, so changes that are undone are never announced. With a server that
 * has neither, such as CockroachDB, nodes only poll.
 */
export function createPostgresPush(
  address: Pick<PostgresListenerOptions, "url" | "readPassword">,
  { where, log }: { readonly where: string; readonly log: Logger },
): Push {
  const pushLog = createPushLog(log, where);
  let notify: (generation?: number) => void = () => undefined;
  let connected = false;
  const listener = openPostgresListener({
    ...address,
    channel: generationChannel,
    applicationName: "sluice listen",
    onMessage: (message) => notify(parseGeneration(message)),
    onState(state, why): void {
      connected = state === "listening";
      if (connected) {
        pushLog.connected();
        notify();
      } else if (state === "refused") pushLog.refused(why ?? "the server has no LISTEN");
      else pushLog.lost(why ?? "the connection was lost");
    },
  });
  return {
    kind: "postgres",
    get connected(): boolean {
      return connected;
    },
    announce(): void {},
    listen(onAnnounced): void {
      notify = onAnnounced;
    },
    close: () => void listener.close(),
  };
}
