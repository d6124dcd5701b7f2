// Reads usage events from a Redis Stream into a ledger. Events arrive at least once: after a crash of this process or of a
// server some come again, and the ledger drops those that it has.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@redis/client";
import { type Entry, openLedger } from "./ledger.ts";

const { STREAM: stream = "usage.events", GROUP: group = "ledger", CONSUMER: consumer = hostname() } = process.env;
/** What a consumer read and did not acknowledge for this long goes to the next one that asks. */
const claimAfterMs = Number(process.env.CLAIM_AFTER_MS ?? 60_000);
const ledger = openLedger(process.env.LEDGER_FILE ?? "usage-ledger.db");
const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
// A read waits for a second at most, so a server that is silent for ten is stuck.
const client = createClient({ url, socket: { socketTimeout: 10_000, reconnectStrategy: 500 } });
client.on("error", (error: Error) => console.error(`${error.message}; connecting again`));
const stop = (): void => client.destroy();
process.once("SIGINT", stop).once("SIGTERM", stop);

/** Starts with the oldest entry: if the server lost the group, the ledger knows what it has. */
const createGroup = (): Promise<unknown> =>
  client.xGroupCreate(stream, group, "0", { MKSTREAM: true }).catch((error: Error) => {
    if (!error.message.startsWith("BUSYGROUP")) throw error;
  });

let claimFrom = "0-0";
/** What a dead consumer left, or else what is new. */
async function read(): Promise<readonly Entry[]> {
  const left = await client.xAutoClaim(stream, group, consumer, claimAfterMs, claimFrom, { COUNT: 100 });
  claimFrom = left.nextId;
  const claimed = left.messages.filter((entry) => entry !== null);
  const removed = left.deletedMessages.map((id) => ({ id, message: {} }));
  if (claimed.length + removed.length > 0) return [...claimed, ...removed];
  const streams = await client.xReadGroup(group, consumer, { key: stream, id: ">" }, { COUNT: 100, BLOCK: 1_000 });
  return streams?.[0]?.messages ?? [];
}

await client.connect();
await createGroup();
console.log(`reading ${stream}`);
let batch: readonly Entry[] = [];
while (client.isOpen) {
  try {
    if (batch.length === 0) batch = await read();
    if (batch.length === 0) continue;
    const { added, rejected } = ledger.add(batch);
    for (const entry of rejected) console.error(`set aside ${entry}`);
    // Only now: what is acknowledged is in the ledger. A crash before this line brings the batch back, and nothing counts twice.
    const ids = batch.map(({ id }) => id);
    await client.xAck(stream, group, ids);
    console.log(`${added} of ${batch.length} events are new`);
    batch = [];
  } catch (error) {
    if (!client.isOpen) break;
    console.error(`${(error as Error).message}; trying again`);
    if ((error as Error).message.startsWith("NOGROUP")) await createGroup().catch(() => undefined);
    await sleep(500);
  }
}
ledger.close();
