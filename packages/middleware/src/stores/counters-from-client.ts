import { type RedisCounters, type RedisSource, redis } from "@sluice/redis";

/** Long enough for the first call to connect, and no request hangs for longer. */
const deadlineMs = 1000;

const opened = new WeakMap<object, RedisCounters>();

/**
 * Counters on the server of a client that the app has (ioredis, iovalkey, node-redis), by connections of their own. There is
 * one set of them for a client, however many limiters there are, and it ends with the client.
 */
export function countersFromClient(client: object): RedisCounters {
  const known = opened.get(client);
  if (known !== undefined) return known;
  // What is none of those clients is refused by name.
  const counters = redis(client as RedisSource, { deadlineMs });
  opened.set(client, counters);
  (client as EndingClient).once?.("end", () => {
    opened.delete(client);
    void counters.close();
  });
  return counters;
}

interface EndingClient {
  once?(event: "end", listener: () => void): unknown;
}
