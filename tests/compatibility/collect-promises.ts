import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { redis } from "@sluice/redis";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { openPolicyStore } from "@sluice/sql";
import { startServer } from "@sluice/test-servers";
import { createLimiter } from "sluice";
import { renderSurface } from "../repository/public-surface.ts";
import { readSourceTree, repositoryRoot, type SourceTree } from "../repository/source-tree.ts";
import type { Promises } from "./find-broken-promises.ts";
import { flattenDocument, flattenOpenApi } from "./flatten-schema.ts";

/** Everything that docs/compatibility.md promises, but for the .proto files, as the code of this commit has it. */
export async function collectPromises(): Promise<Promises> {
  const tree = readSourceTree();
  const parse = (file: string) => JSON.parse(tree.get(file) ?? "");
  const found: Record<string, readonly string[]> = {
    exports: collectExports(),
    "policy-format": flattenDocument(parse("docs/policy.schema.json")),
    "chart-values": flattenDocument(parse("deploy/helm/sluice/values.schema.json")),
    metrics: collectMetrics(tree.get("docs/metrics.md") ?? ""),
    "log-events": collectRows(tree.get("docs/operations.md") ?? "", /^\| `([a-z_]+\.[a-z_]+)` \| (\w+) \| /gm),
    errors: collectRows(tree.get("docs/errors.md") ?? "", /^## `([a-z_]+)`$/gm),
    command: collectCommand(tree),
    migrations: collectMigrations(tree),
    "sql-tables": await collectTables(),
    "redis-keys": await collectRedisKeys(),
    http: await collectHttp(),
  };
  return Object.fromEntries(Object.entries(found).map(([name, lines]) => [name, [...new Set(lines)].toSorted()]));
}

/** `sluice/store value createKeyNames`: what each subpath exports. */
function collectExports(): readonly string[] {
  let entry = "";
  return renderSurface()
    .split("\n")
    .flatMap((line) => {
      if (line.startsWith("# ")) entry = line.slice(2);
      return line === "" ? [] : [line.startsWith("# ") ? entry : `${entry} ${line}`];
    });
}

/** The page lists every metric with its type and its labels, which a test of the server holds. */
function collectMetrics(page: string): readonly string[] {
  const rows = page.matchAll(/^\| `(sluice_\w+)(?:\{([\w,]+)\})?` \| (counter|gauge|histogram) \| /gm);
  return [...rows].flatMap(([, name, labels, type]) => [
    `${name} ${type}`,
    ...(labels ?? "").split(",").flatMap((label) => (label === "" ? [] : [`${name}{${label}}`])),
  ]);
}

/** The groups of every match, joined. */
function collectRows(page: string, pattern: RegExp): readonly string[] {
  return [...page.matchAll(pattern)].map(([, ...groups]) => groups.join(" "));
}

/** Ways back from something new, which their pages offer for a while only. */
const temporary = /grpc.engine/i;

/** Commands, options of `serve`, and variables. */
function collectCommand(tree: SourceTree): readonly string[] {
  const help = (...args: readonly string[]): string =>
    execFileSync(path.join(repositoryRoot, "sluice"), [...args, "--help"], { encoding: "utf8" });
  const commands = collectRows(help(), /^ {2}([a-z][a-z-]+)\b(?= {2,}| [[<])/gm);
  const settings = [...tree].filter(([file]) => /^packages\/server\/src\/settings\/[a-z-]+settings\.ts$/.test(file));
  const serve = help("serve").replaceAll(/\n {20,}/g, " ");
  const lines = [
    ...commands.map((name) => `sluice ${name}`),
    ...collectRows(serve, /^ {2}(--[a-z0-9-]+)/gm).map((name) => `sluice serve ${name}`),
    ...collectRows(serve, /\[([A-Z][A-Z0-9_]+)/g).map((name) => `variable ${name}`),
    ...settings
      .flatMap(([, text]) => collectRows(text, /"((?:SLUICE|REDIS|RATE_LIMIT|OTEL)_[A-Z0-9_]+)"/g))
      .map((name) => `variable ${name}`),
  ];
  return lines.filter((line) => !temporary.test(line));
}

/** A released migration never changes: a database that has it would not get the change. */
function collectMigrations(tree: SourceTree): readonly string[] {
  const files = [...tree.keys()].filter((file) => /^packages\/sql\/src\/migrations\/\d{4}-[a-z-]+\.ts$/.test(file));
  return files.map((file) => {
    const code = tree.get(file)!.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    const digest = createHash("sha256").update(code.replaceAll(/\s+/g, " ")).digest("hex");
    return `${path.basename(file)} ${digest.slice(0, 16)}`;
  });
}

/** Tables and columns, as an SQLite file has them; a test of the policy store holds PostgreSQL to the same. */
async function collectTables(): Promise<readonly string[]> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-schema-"));
  try {
    const file = path.join(folder, "policies.db");
    await (await openPolicyStore({ url: `sqlite:${file}` })).close();
    const database = new DatabaseSync(file, { readOnly: true });
    const rows = database
      .prepare(
        "select t.name as tbl, c.name as col, c.type as type from sqlite_master t, pragma_table_info(t.name) c " +
          "where t.type = 'table' and t.name like 'sluice_%'",
      )
      .all() as { tbl: string; col: string; type: string }[];
    database.close();
    return rows.map(({ tbl, col, type }) => `${tbl}.${col} ${type.toLowerCase()}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every kind of counter, each with its key and the type that Valkey stores it as. */
async function collectRedisKeys(): Promise<readonly string[]> {
  const server = await startServer({ flavor: "valkey" });
  const counters = redis(server.url, { deadlineMs: 20_000 });
  const windows = ["5/h"];
  const policies = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"].map(
    (algorithm) => ({ id: algorithm, limits: [{ by: ["user"], windows, algorithm }], on_failure: "closed" }),
  );
  const special = [
    { id: "blocking", limits: [{ by: ["user"], windows: ["1/h"], block_for: "1h" }], on_failure: "closed" },
    {
      id: "named",
      limits: [{ name: "daily", by: ["tenant", "user"], windows: ["5/d", "9/w"] }],
      on_failure: "closed",
    },
  ];
  const limiter = createLimiter({ counters, policies: { policies: [...policies, ...special] as never } });
  try {
    await counters.connected(20_000);
    for (const { id } of [...policies, ...special]) {
      const request = { dimensions: { user: "ada", tenant: "acme" }, policies: [id], deadlineMs: 20_000 };
      await limiter.check({ ...request, id: `request-${id}` });
      await limiter.check({ ...request, id: `second-${id}` });
    }
    await limiter.check({ dimensions: { user: "x".repeat(100) }, policies: ["gcra"], deadlineMs: 20_000 });
    const keys = (await server.command("KEYS", "*")) as readonly string[];
    return await Promise.all(keys.map(async (key) => `${await server.command("TYPE", key)} ${key}`));
  } finally {
    await limiter.close();
    await server.close();
  }
}

/** The routes of the HTTP port and of the admin port. */
async function collectHttp(): Promise<readonly string[]> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-routes-"));
  const options = { httpPort: "0", grpcPort: "off", adminPort: "0", store: `sqlite:${folder}/policies.db` };
  const reading = parseSettings({}, options);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const daemon: Daemon = await startDaemon({ settings: reading.settings, log: quiet });
  try {
    const read = async (url: string) => (await fetch(`${url}/openapi.json`)).json() as never;
    return [...flattenOpenApi(await read(daemon.url)), ...flattenOpenApi(await read(daemon.addresses.admin[0]!))];
  } finally {
    await daemon.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
