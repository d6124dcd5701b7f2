// npm run bench -- peers [--json] [--quick] [--write] [--no-install] [--only <contest>]: what a decision costs in Sluice and in other
// rate limit servers that do the same work over the same protocol, with the same load. It builds them once, in a cache folder outside
// the repository, and says which are missing. Linux only. --write puts the tables into docs/benchmarks.md.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { writeSection } from "./measure/write-section.ts";
import { type ContestName, contestNames, contests } from "./peers/contests.ts";
import { installPeers, peerFolder } from "./peers/install-peers.ts";
import { type MeasuredContest, measureContest } from "./peers/measure-contest.ts";
import { type MeasuredMemory, type MemoryName, measureMemory, memoryNames } from "./peers/measure-memory.ts";
import { unmeasured } from "./peers/peer-programs.ts";
import { type PeersResult, renderPeers, serverTitles } from "./peers/render-peers.ts";
import type { World } from "./peers/start-server-under-load.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    install: { type: "boolean", default: true },
    only: { type: "string" },
  },
  allowNegative: true,
});
const chosen = contestNames.filter((name) => args.only === undefined || name === args.only);
if (chosen.length === 0 && args.only !== "memory")
  throw new Error(`There is no contest "${args.only}": take memory or one of ${contestNames.join(", ")}`);

/** The amount of work. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? { rounds: 1, warmup: 0, seconds: 1, pacedSeconds: 1, keys: 1_000 }
  : { rounds: 5, warmup: 3, seconds: 2, pacedSeconds: 4, keys: 1_000_000 };

// Servers end when this process exits, which a signal alone would not do in order.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

const startedMs = performance.now();
// Before this process keeps itself to one of them.
const cores = availableParallelism();
const root = path.join(import.meta.dirname, "..");
// Users run compiled code.
execFileSync(path.join(root, "node_modules", ".bin", "tsc"), ["-b", "packages/cli", "packages/server"], {
  cwd: root,
  stdio: "inherit",
});

const cache = peerFolder();
const installation = await installPeers({ folder: cache, build: args.install, progress: console.log });
for (const { version } of Object.values(installation.installed)) console.log(`  found    ${version}`);
for (const [name, why] of Object.entries(installation.missing)) console.log(`  missing  ${name}: ${why}`);
for (const [name, why] of Object.entries(unmeasured)) console.log(`  left out ${name}: ${why}`);

const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
const world: World = { root, folder, installation, valkeyPort: undefined };
const measured: Partial<Record<ContestName, MeasuredContest>> = {};
const memory: Partial<Record<MemoryName, MeasuredMemory>> = {};
console.log(
  "decisions a second; µs of CPU of the server and of Valkey for each; ms that callers wait at one rate for all",
);
try {
  for (const name of chosen) {
    const contest = await measureContest(contests[name], world, size);
    measured[name] = contest;
    console.log(`${name}, latency at ${contest.paced_per_s} /s`);
    for (const [server, one] of Object.entries(contest.servers))
      console.log(
        `  ${server.padEnd(26)} ${`${one.decisions_per_s}`.padStart(8)} /s  ${one.server_cpu_us} + ${one.store_cpu_us} µs  ` +
          `median ${one.p50_ms}, 99 % ${one.p99_ms}`,
      );
  }
  console.log(`MiB before and after ${size.keys} keys`);
  for (const name of args.only === undefined || args.only === "memory" ? memoryNames : []) {
    const one = await measureMemory(name, world, size.keys);
    if (one === undefined) continue;
    memory[name] = one;
    console.log(
      `  ${name.padEnd(26)} ${one.before_mib} → ${one.after_mib}, Valkey ${one.store_before_mib} → ${one.store_after_mib}; ` +
        `${one.bytes_per_key} bytes for each key`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The first match in what a program prints. */
function findVersion(program: string, versionArgs: readonly string[], pattern: RegExp): string {
  return pattern.exec(execFileSync(program, versionArgs, { encoding: "utf8" }))?.[1] ?? "unknown";
}

const result: PeersResult = {
  suite: "peers",
  cores,
  rounds: size.rounds,
  seconds: size.seconds,
  versions: {
    sluice: `this one, on Node ${process.version.slice(1)}`,
    ...Object.fromEntries(Object.entries(installation.installed).map(([name, { version }]) => [name, version])),
    Valkey: findVersion("valkey-server", ["--version"], /v=([\d.]+)/),
    h2load: findVersion("h2load", ["--version"], /nghttp2\/([\d.]+)/),
  },
  missing: installation.missing,
  contests: measured,
  keys: size.keys,
  memory,
  took_s: Math.round((performance.now() - startedMs) / 1_000),
};
console.log(`took ${result.took_s} s`);
if (args.write) {
  const lacking = Object.keys(installation.missing);
  if (args.only !== undefined || args.quick || lacking.length > 0) {
    console.log(
      `docs/benchmarks.md stays as it is: it takes a full run with all peers${lacking.length > 0 ? `, and ${lacking.map((name) => serverTitles[name as keyof typeof serverTitles]).join(", ")} is missing` : ""}`,
    );
    process.exitCode = 3;
  } else writeSection("peers", renderPeers(result));
}
if (args.json) console.log(JSON.stringify(result));
