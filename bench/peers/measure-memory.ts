import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "@sluice/test-servers";
import { createRespCaller } from "../service/resp-caller.ts";
import { createCaller } from "./ask-once.ts";
import { findCores, pin } from "./cores.ts";
import { readRssBytes } from "./process-usage.ts";
import { envoyMessage, envoyQuestion, fewPerHour, gubernatorMessage, gubernatorQuestion } from "./questions.ts";
import { type ServerName, type ServerUnderLoad, startServerUnderLoad, type World } from "./start-server-under-load.ts";

export interface MeasuredMemory {
  readonly counters: "memory" | "valkey";
  readonly before_mib: number;
  readonly after_mib: number;
  /** 0 if counters are in memory. */
  readonly store_before_mib: number;
  readonly store_after_mib: number;
  /** What a key adds to the server and the store. */
  readonly bytes_per_key: number;
}

export type MemoryName =
  | "sluice_memory"
  | "gubernator_memory"
  | "throttlecrab_memory"
  | "sluice_valkey"
  | "envoy_ratelimit_valkey";

/** Decides once about every key, by the fastest way that the server offers. */
type Fill = (server: ServerUnderLoad, keys: number) => Promise<void>;

const keysPerMessage = 1_000;
const commandsPerPipeline = 250;
const connections = 8;

const fills: Readonly<Record<MemoryName, { server: ServerName; counters: "memory" | "valkey"; fill: Fill }>> = {
  sluice_memory: { server: "sluice", counters: "memory", fill: fillSluice },
  gubernator_memory: {
    server: "gubernator",
    counters: "memory",
    fill: (server, keys) =>
      fillByCalls(server, gubernatorQuestion(1), (names) => gubernatorMessage(fewPerHour, names), keys),
  },
  throttlecrab_memory: {
    server: "throttlecrab",
    counters: "memory",
    fill: (server, keys) =>
      fillByCommands(server, keys, (key) => ["THROTTLE", key, `${fewPerHour}`, `${fewPerHour}`, "3600"]),
  },
  sluice_valkey: { server: "sluice", counters: "valkey", fill: fillSluice },
  envoy_ratelimit_valkey: {
    server: "envoy_ratelimit",
    counters: "valkey",
    fill: (server, keys) => fillByCalls(server, envoyQuestion, (names) => envoyMessage("key", names), keys),
  },
};

export const memoryNames = Object.keys(fills) as readonly MemoryName[];

/** Memory before and after decisions about that many keys. Undefined if the peer is not installed. */
export async function measureMemory(name: MemoryName, world: World, keys: number): Promise<MeasuredMemory | undefined> {
  const { server: serverName, counters, fill } = fills[name];
  const valkey = counters === "valkey" ? await startServer({ flavor: "valkey" }) : undefined;
  const server = await startServerUnderLoad(serverName, { ...world, valkeyPort: valkey?.port });
  try {
    if (server === undefined) return undefined;
    const cores = findCores(0);
    pin(process.pid, cores.load);
    if (valkey !== undefined) pin(valkey.pid, cores.load);
    // Connections, and what a runtime compiles or collects at first, are not memory of keys.
    const warmup = Math.min(20 * keysPerMessage, keys / 10);
    await fill(server, warmup);
    const readStore = (): number => (valkey === undefined ? 0 : readRssBytes(valkey.pid));
    const before = [readRssBytes(server.pid), readStore()] as const;
    await fill(server, keys);
    await wait(1_000);
    const after = [readRssBytes(server.pid), readStore()] as const;
    return {
      counters,
      before_mib: mebibytes(before[0]),
      after_mib: mebibytes(after[0]),
      store_before_mib: mebibytes(before[1]),
      store_after_mib: mebibytes(after[1]),
      bytes_per_key: Math.round((after[0] + after[1] - before[0] - before[1]) / (keys - warmup)),
    };
  } finally {
    await server?.stop();
    await valkey?.close();
  }
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 ** 2);
}

const keyName = (i: number): string => `user-${i}`;

function fillSluice(server: ServerUnderLoad, keys: number): Promise<void> {
  return fillByCommands(server, keys, (key) => ["SLUICE.CHECK", `user=${key}`, "endpoint=/v1/keys"]);
}

/** Pipelined over several connections, with a bounded number of commands on their way. */
async function fillByCommands(
  { ports }: ServerUnderLoad,
  keys: number,
  commandFor: (key: string) => readonly string[],
): Promise<void> {
  let next = 0;
  const fillByOne = async (): Promise<void> => {
    const caller = await createRespCaller(ports.resp);
    try {
      while (next < keys) {
        const from = next;
        next = Math.min(keys, from + commandsPerPipeline);
        const names = Array.from({ length: next - from }, (_, i) => keyName(from + i));
        await Promise.all(names.map((name) => caller.send(...commandFor(name))));
      }
    } finally {
      caller.close();
    }
  };
  await Promise.all(Array.from({ length: connections }, fillByOne));
}

/** Many keys in each call. */
async function fillByCalls(
  { ports }: ServerUnderLoad,
  question: { readonly path: string },
  messageFor: (names: readonly string[]) => Uint8Array,
  keys: number,
): Promise<void> {
  const caller = createCaller(ports.grpc, question.path);
  try {
    for (let from = 0; from < keys; from += keysPerMessage) {
      const count = Math.min(keysPerMessage, keys - from);
      await caller.call(messageFor(Array.from({ length: count }, (_, i) => keyName(from + i))));
    }
  } finally {
    caller.close();
  }
}
