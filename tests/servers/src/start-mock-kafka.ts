import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { hasEnded, watchOver } from "./server-process.ts";
import { waitUntil } from "./wait-until.ts";

const startWithinMs = 15_000;
const run = promisify(execFile);

/** A record as kcat reads it. */
export interface KafkaRecord {
  readonly key: string;
  /** Undefined: the key is deleted. */
  readonly value: string | undefined;
  readonly partition: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface TestKafka {
  /** `127.0.0.1:12345` */
  readonly broker: string;
  /** Everything in a topic, in the order of each partition. */
  read(topic: string): Promise<readonly KafkaRecord[]>;
  /** Ends the brokers. They cannot be started again: the next ones have other ports. */
  close(): Promise<void>;
}

/**
 * Brokers of librdkafka's mock cluster, in a process of Debian's kcat. Topics come into being when they are used, with four
 * partitions, and are kept in memory. The mock speaks the protocol itself, over TCP, but no idempotent producers, no consumer
 * groups as newer clients ask for them, and no administration.
 */
export async function startMockKafka(brokers = 1): Promise<TestKafka> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-kafka-"));
  // kcat consumes for ever, from brokers that it starts itself.
  const child = spawn("kcat", ["-C", "-t", "keep", "-b", "x", "-X", `test.mock.num.brokers=${brokers}`, "-d", "mock"], {
    cwd: folder,
    env: { PATH: `${process.env.PATH ?? ""}${path.delimiter}/usr/bin` },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => {
    if (log.length < 100_000) log += String(chunk);
  });
  child.once("error", (error) => {
    log += `kcat does not start: ${error.message}`;
  });
  const watchman = child.pid === undefined ? undefined : watchOver(child.pid, folder);
  child.once("exit", () => watchman?.stdin?.write("ended\n"));

  async function close(): Promise<void> {
    if (!hasEnded(child)) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
    watchman?.kill("SIGKILL");
  }

  const broker = await waitUntil("kcat says where its brokers are", startWithinMs, async () =>
    hasEnded(child) ? "" : /bootstrap\.servers=(127\.0\.0\.1:\d+)/.exec(log)?.[1],
  );
  if (broker === "") {
    await close();
    throw new Error(`kcat did not start brokers. Its log ends with:\n${log.slice(-2_000)}`);
  }
  return {
    broker,
    async read(topic): Promise<readonly KafkaRecord[]> {
      const args = ["-C", "-q", "-e", "-J", "-b", broker, "-t", topic, "-o", "beginning"];
      const { stdout } = await run("kcat", args, { maxBuffer: 256 * 1024 * 1024 });
      return stdout.split("\n").filter(Boolean).map(parseRecord);
    },
    close,
  };
}

/** kcat prints `{"key": …, "payload": …, "headers": ["name", "value", …]}`. */
function parseRecord(line: string): KafkaRecord {
  const {
    key,
    payload,
    partition,
    headers = [],
  } = JSON.parse(line) as {
    readonly key: string;
    readonly payload: string | null;
    readonly partition: number;
    readonly headers?: readonly string[];
  };
  const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] ?? ""] as const] : []));
  return { key, value: payload ?? undefined, partition, headers: Object.fromEntries(pairs) };
}
