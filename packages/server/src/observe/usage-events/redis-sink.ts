import { openRedisStream, type RedisServers, renderServers } from "@sluice/redis";
import type { EventSink } from "./event-sink.ts";
import { renderUsageEvent } from "./usage-event.ts";

export interface RedisSinkOptions {
  readonly servers: RedisServers;
  readonly stream: string;
  /** About how many events the stream keeps; the oldest are removed. */
  readonly maxLength: number;
}

/** Adds events to a stream of Valkey or Redis: an entry each, with the fields `id` and `event`, the event in JSON. */
export function createRedisSink({ servers, stream, maxLength }: RedisSinkOptions): EventSink {
  // Opened with the first batch: nothing is connected to before there is something to send.
  let opened: ReturnType<typeof openRedisStream> | undefined;
  return {
    kind: "redis",
    where: `${renderServers(servers)} ${stream}`,
    send(events, signal): Promise<void> {
      opened ??= openRedisStream(servers, { key: stream, maxLength });
      return opened.append(
        events.map((event) => ["id", event.id, "event", renderUsageEvent(event)]),
        signal,
      );
    },
    async close(): Promise<void> {
      opened?.close();
    },
  };
}
