import { openRedisChannel, type RedisServers, renderServers } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type Push, parseGeneration } from "./push.ts";
import { createPushLog } from "./push-log.ts";

/** By pub/sub of Valkey or Redis, on the channel `<prefix>:generation`. */
export function createRedisPush(servers: RedisServers, prefix: string, log: Logger): Push {
  const told = createPushLog(log, renderServers(servers));
  let heard: (generation?: number) => void = () => undefined;
  const channel = openRedisChannel(servers, `${prefix}:generation`, {
    onMessage: (message) => heard(parseGeneration(message)),
    onConnected(): void {
      told.connected();
      heard();
    },
    // The server's own words name no password.
    onLost: (error) => told.lost(error.message),
  });
  return {
    kind: "redis",
    get connected(): boolean {
      return channel.connected;
    },
    announce: (generation) => channel.send(String(generation)),
    listen(onHeard): void {
      heard = onHeard;
    },
    close: () => channel.close(),
  };
}
