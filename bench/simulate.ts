// npm run bench -- simulate [--json] [--quick]: how many requests of an access log are replayed in a second of CPU time,
// from the file to the report, what the parts of that cost, and how much memory a log of 2 GiB takes.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { Simulation, type SimulationReport } from "@sluice/simulate";
import { fileSource, type LogSource, readLogs, streamSource } from "@sluice/simulate/logs";
import { createLimiter, ManualClock, type PolicySet, parsePolicies } from "sluice";
import { createRandom, createZipf } from "./measure/draw-keys.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    /** Measures only a large log, in a separate process: memory is that of a whole process. */
    large: { type: "boolean", default: false },
  },
});

/** The amount of work. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? { requests: 20_000, rounds: 1, largeBytes: 4 * 2 ** 20 }
  : { requests: 1_000_000, rounds: 3, largeBytes: 2 * 2 ** 30 };
const clients = 50_000;
const perSecond = 2_000;
const startMs = Date.UTC(2026, 0, 31, 12);

/** One policy with a limit that some clients exceed, and one for another path. */
function createPolicies(windows: string): PolicySet {
  return parsePolicies({
    policies: [
      { id: "api", match: { endpoint: "/v1/**" }, limits: [{ by: ["ip"], windows: [windows] }], on_failure: "open" },
      { id: "login", match: { endpoint: "/login" }, limits: [{ by: ["ip"], windows: ["5/m"] }], on_failure: "open" },
    ],
  });
}

const candidate = createPolicies("60/m");
const now = createPolicies("120/m");

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function renderLine(number: number, client: number): string {
  const at = new Date(startMs + Math.floor(number / perSecond) * 1000);
  const [date = "", clock = ""] = at.toISOString().split("T");
  const [year, month, day] = date.split("-");
  const time = `${day}/${months[Number(month) - 1]}/${year}:${clock.slice(0, 8)} +0000`;
  const ip = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`;
  return `${ip} - - [${time}] "GET /v1/orders/${number % 900}?page=${number % 7} HTTP/1.1" 200 ${number % 5000} "https://shop.example/cart" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36"\n`;
}

function renderLog(): Buffer {
  const drawClient = createZipf(clients, createRandom(1));
  const lines = Array.from({ length: size.requests }, (_, number) => renderLine(number, drawClient()));
  return Buffer.from(lines.join(""));
}

interface Timed<T> {
  readonly value: T;
  readonly cpuMs: number;
}

async function timeCpu<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const before = process.cpuUsage();
  const value = await work();
  const { user, system } = process.cpuUsage(before);
  return { value, cpuMs: (user + system) / 1000 };
}

/** The best of several rounds: other processes only ever add to the time. */
async function requestsPerCpuSecond(work: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < size.rounds; round++) least = Math.min(least, (await timeCpu(work)).cpuMs);
  return Math.round(size.requests / (least / 1000));
}

async function replayLog(file: string, before: PolicySet | undefined): Promise<SimulationReport> {
  return replaySource(await fileSource(file), before);
}

async function replaySource(source: LogSource, before: PolicySet | undefined): Promise<SimulationReport> {
  let simulation: Simulation | undefined;
  await readLogs([source], (request) => simulation!.add(request), {
    onCarried(carried) {
      simulation = new Simulation({ candidate, now: before, carried });
    },
  });
  return simulation!.finish();
}

async function readLog(file: string): Promise<number> {
  let requests = 0;
  await readLogs([await fileSource(file)], () => {
    requests += 1;
  });
  return requests;
}

/** The same checks in a limiter alone: what no replay can be faster than. */
async function checkAlone(): Promise<void> {
  const clock = new ManualClock(startMs);
  const limiter = createLimiter({ policies: candidate, clock });
  const drawClient = createZipf(clients, createRandom(1));
  const ips = Array.from({ length: clients }, (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  const endpoints = Array.from({ length: 900 }, (_, n) => `/v1/orders/${n}`);
  for (let number = 0; number < size.requests; number++) {
    if (number % perSecond === 0) clock.advance(1000);
    const dimensions = { ip: ips[drawClient()]!, endpoint: endpoints[number % 900]!, method: "GET" };
    limiter.checkSync({ dimensions });
  }
}

interface LargeLog {
  readonly log_mib: number;
  readonly requests: number;
  readonly resident_mib: number;
}

/** A log that is made while it is read, and never held: what stays in memory is the simulation. */
async function* makeLargeLog(): AsyncIterable<string> {
  const drawClient = createZipf(clients, createRandom(1));
  const linesPerChunk = 1_000;
  let number = 0;
  for (let bytes = 0; bytes < size.largeBytes; ) {
    const chunk = Array.from({ length: linesPerChunk }, () => renderLine(number++, drawClient())).join("");
    bytes += chunk.length;
    yield chunk;
  }
}

async function measureLargeLog(): Promise<LargeLog> {
  const { requests } = await replaySource(streamSource("large.log", makeLargeLog()), now);
  const { maxRSS } = process.resourceUsage();
  return { log_mib: Math.round(size.largeBytes / 2 ** 20), requests, resident_mib: Math.round(maxRSS / 1024) };
}

async function measureElsewhere(): Promise<LargeLog> {
  const words = ["-C", "source", process.argv[1]!, "--large", ...(args.quick ? ["--quick"] : [])];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  return JSON.parse(stdout) as LargeLog;
}

async function main(): Promise<void> {
  if (args.large) {
    console.log(JSON.stringify(await measureLargeLog()));
    return;
  }
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
  try {
    const file = path.join(folder, "access.log");
    const log = renderLog();
    writeFileSync(file, log);
    writeFileSync(`${file}.gz`, gzipSync(log));
    const report = await replayLog(file, now);
    if (report.requests !== size.requests) throw new Error(`${report.requests} of ${size.requests} were replayed`);
    const result = {
      suite: "simulate",
      requests: size.requests,
      log_mib: Math.round(statSync(file).size / 2 ** 20),
      requests_per_cpu_s: {
        read_only: await requestsPerCpuSecond(() => readLog(file)),
        checks_alone: await requestsPerCpuSecond(checkAlone),
        one_policy_set: await requestsPerCpuSecond(() => replayLog(file, undefined)),
        one_policy_set_gzip: await requestsPerCpuSecond(() => replayLog(`${file}.gz`, undefined)),
        two_policy_sets: await requestsPerCpuSecond(() => replayLog(file, now)),
      },
      large_log: await measureElsewhere(),
    };
    for (const [name, value] of Object.entries(result.requests_per_cpu_s))
      console.log(`${name.padEnd(24)} ${value.toLocaleString("en")} requests per CPU second`);
    const { log_mib, requests, resident_mib } = result.large_log;
    console.log(
      `${log_mib} MiB of log, ${requests.toLocaleString("en")} requests: ${resident_mib} MiB of memory at most`,
    );
    if (args.json) console.log(JSON.stringify(result));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
process.exit(0);
