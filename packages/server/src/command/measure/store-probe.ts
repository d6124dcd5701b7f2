import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Address, connectNodeRedis, parseRedisUrl, type RedisConnection } from "@sluice/redis";
import { withDeadline } from "../../with-deadline.ts";
import { CommandFailure } from "../command-failure.ts";

const answerWithinMs = 5_000;

/** A store's own figures since it started. */
export interface StoreUsage {
  readonly cpuUs: number;
  readonly memoryBytes: number;
  /** Both directions. */
  readonly netBytes: number;
  /** Written to each replica. Undefined: it has none. */
  readonly replicatedBytes: number | undefined;
}

export interface StoreProbe {
  readonly url: string;
  /** `valkey 8.0.1` */
  readonly product: string;
  usage(): Promise<StoreUsage>;
  close(): Promise<void>;
}

/** The store at `url`, which must be a single server. */
export async function openStoreProbe(url: string): Promise<StoreProbe> {
  const servers = parseRedisUrl(url);
  const [address] = servers.addresses;
  if (servers.kind !== "standalone" || address === undefined)
    throw new CommandFailure("--measure needs a single Valkey or Redis: a URL that begins with redis:// or rediss://");
  const connection = await connectTo(address, url);
  const info = async (): Promise<ReadonlyMap<string, string>> => readFields(String(await connection.send(["INFO"])));
  const first = await info();
  const valkey = first.get("valkey_version");
  return {
    url,
    product: valkey === undefined ? `redis ${first.get("redis_version")}` : `valkey ${valkey}`,
    async usage() {
      const fields = await info();
      const number = (name: string): number => Number(fields.get(name) ?? 0);
      // Servers before 7.0 know only the whole process.
      const thread = fields.has("used_cpu_user_main_thread") ? "_main_thread" : "";
      return {
        cpuUs: (number(`used_cpu_user${thread}`) + number(`used_cpu_sys${thread}`)) * 1e6,
        // Buffers are not counters, and those for replicas grow with every write.
        memoryBytes:
          number("used_memory") -
          number("mem_clients_normal") -
          (number("mem_total_replication_buffers") || number("mem_replication_backlog")),
        netBytes: number("total_net_input_bytes") + number("total_net_output_bytes"),
        replicatedBytes: number("connected_slaves") === 0 ? undefined : number("master_repl_offset"),
      };
    },
    close: async () => connection.close(),
  };
}

/** A Valkey or Redis of our own, with a replica, in a temporary folder. Undefined: none is installed. */
export async function startOwnStore(): Promise<StoreProbe | undefined> {
  for (const program of ["valkey-server", "redis-server"]) {
    const folder = await mkdtemp(join(tmpdir(), "sluice-measure-"));
    const port = await findPort();
    const stops = [start(program, folder, port, [])];
    const close = async (): Promise<void> => {
      await Promise.all(stops.map((stop) => stop()));
      await rm(folder, { recursive: true, force: true });
    };
    try {
      const probe = await tryUntilAnswered(`redis://127.0.0.1:${port}`);
      stops.push(start(program, folder, await findPort(), ["--replicaof", "127.0.0.1", `${port}`]));
      while ((await probe.usage()).replicatedBytes === undefined) await sleep(20);
      return { ...probe, close: () => probe.close().then(close) };
    } catch (error) {
      await close();
      if (!(error instanceof CommandFailure)) throw error;
    }
  }
  return undefined;
}

/** Returns what stops it. A program that is not installed never answers. */
function start(program: string, folder: string, port: number, more: readonly string[]): () => Promise<void> {
  const args = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder];
  const child = spawn(program, [...args, "--repl-diskless-sync-delay", "0", ...more], { stdio: "ignore" });
  const kill = (): void => void child.kill("SIGKILL");
  // Interrupted, this process leaves no server behind.
  process.once("exit", kill);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve()).once("error", () => resolve());
  }).finally(() => process.off("exit", kill));
  return () => {
    kill();
    return ended;
  };
}

const tries = 40;

async function tryUntilAnswered(url: string): Promise<StoreProbe> {
  for (let left = tries; ; left--) {
    try {
      return await openStoreProbe(url);
    } catch (error) {
      if (left === 0) throw error;
      await sleep(50);
    }
  }
}

async function connectTo(address: Address, url: string): Promise<RedisConnection> {
  let connection: RedisConnection | undefined;
  const connected = new Promise<void>((resolve, reject) => {
    connection = connectNodeRedis({ ...parseRedisUrl(url) })(address, { onReady: () => resolve(), onLost: reject });
  });
  try {
    await withDeadline(connected, answerWithinMs, () => new Error(`no answer within ${answerWithinMs / 1_000} s`));
    return connection!;
  } catch (error) {
    connection?.close();
    throw new CommandFailure(`the store to measure cannot be reached: ${(error as Error).message}`);
  }
}

function readFields(info: string): ReadonlyMap<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}

async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
