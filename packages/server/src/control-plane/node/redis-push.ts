import { openRedisChannel, type RedisServers, renderServers } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type Push, parseGeneration } from "./push.ts";
import { createPushLog } from "./push-log.ts";

/** Push by pub/sub of Valkey or Redis, on the channel `<prefix>:generation`. */
export function createRedisPush(servers: RedisServers, prefix: string, log: Logger): Push {
  const pushLog = createPushLog(log, renderServers(servers));
  let notify: (generation?: number) => void = () => undefined;
  const channel = openRedisChannel(servers, `${prefix}:generation`, {
    onMessage: (message) => notify(parseGeneration(message)),
    onConnected(): void {
      pushLog.connected();
      notify();
    },
    // The server's message contains no password.
    onLost: (error) => pushLog.lost(error.message),
  });
  return {
    kind: "redis",
    get connected(): boolean {
      return channel.connected;
    },
    announce: (generation) => channel.send(String(generation)),
    listen(onAnnounced): void {
      notify = onAnnounced;
    },
    close: () => channel.close(),
  };
}
