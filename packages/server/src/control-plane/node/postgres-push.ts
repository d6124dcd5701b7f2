import { generationChannel } from "@sluice/sql";
import { openPostgresListener } from "@sluice/sql/notices";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type Push, parseGeneration } from "./push.ts";
import { createPushLog } from "./push-log.ts";

/**
 * By LISTEN. The NOTIFY is a part of each change, so that nobody hears of one that was undone. Beside a server without them, such as
 * CockroachDB, nodes only look.
 */
export function createPostgresPush(url: string, where: string, log: Logger): Push {
  const told = createPushLog(log, where);
  let heard: (generation?: number) => void = () => undefined;
  let connected = false;
  const listener = openPostgresListener({
    url,
    channel: generationChannel,
    applicationName: "sluice listen",
    onMessage: (message) => heard(parseGeneration(message)),
    onState(state, why): void {
      connected = state === "listening";
      if (connected) {
        told.connected();
        heard();
      } else if (state === "refused") told.refused(why ?? "it knows no LISTEN");
      else told.lost(why ?? "the connection was lost");
    },
  });
  return {
    kind: "postgres",
    get connected(): boolean {
      return connected;
    },
    announce(): void {},
    listen(onHeard): void {
      heard = onHeard;
    },
    close: () => void listener.close(),
  };
}
