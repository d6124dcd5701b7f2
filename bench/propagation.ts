// npm run bench -- propagation [--changes 100] [--kafka 127.0.0.1:9092] [--json] [--quick]: how long after a change was answered every
// node decides by it, if nodes are notified, and if they only poll. Kafka is measured with the brokers that you name.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startPostgres, startServer } from "@sluice/test-servers";
import { type BenchNode, startNode } from "./propagation/start-node.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    changes: { type: "string", default: "100" },
    kafka: { type: "string" },
  },
});
const changes = args.quick ? 3 : Number(args.changes);
if (!(changes >= 1 && changes <= 250)) throw new Error("--changes must be a number from 1 to 250");
const nodeCount = 3;

const createPolicy = (limit: number): object => ({
  id: "p",
  match: { endpoint: "/p" },
  limits: [{ by: ["user"], windows: [`${limit}/h`] }],
  on_failure: "open",
});

async function limitOn({ http }: BenchNode): Promise<number> {
  const response = await fetch(`${http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { user: "u", endpoint: "/p" }, preview: true }),
  });
  return ((await response.json()) as { limit: number }).limit;
}

/** When a node was first seen to decide by this limit. */
async function seenOn(node: BenchNode, limit: number): Promise<number> {
  while ((await limitOn(node)) !== limit);
  return performance.now();
}

async function put({ admin }: BenchNode, token: string, version: number, limit: number): Promise<void> {
  const response = await fetch(`${admin}/api/v1/policies/p`, {
    method: "PUT",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ document: createPolicy(limit), expected_version: version }),
  });
  if (!response.ok) throw new Error(`a change was answered with ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

/** Milliseconds from the answer to a change until the last node decides by it, change by change. */
async function measure(postgresUrl: string, redisUrl: string, push: string): Promise<readonly number[]> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-propagation-"));
  const tokenFile = path.join(folder, "token");
  const env = {
    SLUICE_STORE_URL: postgresUrl,
    SLUICE_REDIS_URL: redisUrl,
    SLUICE_REDIS_PREFIX: push,
    SLUICE_PUSH: push,
    ...(push === "kafka" && { SLUICE_KAFKA: args.kafka }),
    SLUICE_ADMIN_TOKEN_FILE: tokenFile,
  };
  const nodes: BenchNode[] = [];
  try {
    for (let i = 0; i < nodeCount; i++) nodes.push(await startNode(env));
    const token = readFileSync(tokenFile, "utf8").trim();
    const tookMs: number[] = [];
    for (let change = 0; change <= changes; change++) {
      const limit = 1_000 + change;
      await put(nodes[change % nodeCount]!, token, change, limit);
      const answeredMs = performance.now();
      const seenMs = await Promise.all(nodes.map((node) => seenOn(node, limit)));
      // The first one warms up.
      if (change > 0) tookMs.push(Math.max(...seenMs) - answeredMs);
      // Not in step with polling.
      await pause(Math.random() * 300);
    }
    return tookMs;
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!.toFixed(1));
}

const ways = {
  ...{ listen_notify: "postgres", pub_sub: "redis" },
  ...(args.kafka !== undefined && { kafka_topic: "kafka" }),
  looking_only: "none",
};
const [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
const result: Record<string, unknown> = { suite: "propagation", nodes: nodeCount, changes };
try {
  console.log(`${changes} changes, from the answer until each of ${nodeCount} nodes decides by it, in ms`);
  console.log(`  ${"".padEnd(16)}${["p50", "p99", "longest"].map((name) => name.padStart(10)).join("")}`);
  for (const [name, push] of Object.entries(ways)) {
    const tookMs = await measure(await postgres.createDatabase(), valkey.url, push);
    const measurements = {
      p50_ms: percentile(tookMs, 0.5),
      p99_ms: percentile(tookMs, 0.99),
      max_ms: percentile(tookMs, 1),
    };
    result[name] = measurements;
    const cells = Object.values(measurements).map((ms) => ms.toFixed(1).padStart(10));
    console.log(`  ${name.padEnd(16)}${cells.join("")}`);
  }
} finally {
  await Promise.all([postgres.close(), valkey.close()]);
}
if (args.kafka === undefined) console.log("  A Kafka topic was not measured: name brokers with --kafka.");
if (args.json) console.log(JSON.stringify(result));
