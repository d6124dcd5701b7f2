import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";
import { LatencyCounts } from "./latency-counts.ts";

let folder: string;
let daemon: Daemon;
const signals = new EventEmitter();

async function run(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const code = await runProgram({
    args: ["replay", ...args.map((arg) => arg.replace(/^@/, `${folder}/`))],
    env: {},
    terminal: {
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
    },
    signals,
  });
  return { code, out, err };
}

async function start(extra: Readonly<Record<string, string>>): Promise<Daemon> {
  const flags = { httpPort: "0", grpcPort: "off", config: join(folder, "policies.json"), ...extra };
  const reading = parseSettings({}, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
}

/** Ten requests of one user, of which five are allowed, recorded by a server. */
async function record(): Promise<void> {
  const server = await start({ record: join(folder, "requests.rec") });
  const checks = Array.from({ length: 10 }, () => ({ dimensions: { user: "u1" }, cost: 2, domain: "shop" }));
  const headers = { "content-type": "application/json" };
  await fetch(`${server.url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  await server.close();
}

/** A log of ten seconds with a request each. */
const log = Array.from(
  { length: 10 },
  (_, i) => `203.0.113.7 - - [31/Jan/2026:12:00:0${i} +0000] "GET /orders HTTP/1.1" 200 17 "-" "-"\n`,
).join("");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-replay-"));
  const policies = [{ id: "api", domain: "shop", limits: [{ by: ["user"], windows: ["10/d"] }], on_failure: "open" }];
  await writeFile(join(folder, "policies.json"), JSON.stringify({ policies, default: "none" }));
  await writeFile(join(folder, "access.log"), log);
  await record();
  daemon = await start({});
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

describe("sluice replay", () => {
  it("sends a recording to a server, and says whether it decides as recorded", async () => {
    const { code, out } = await run(
      "@requests.rec",
      "--server",
      daemon.url,
      "--speed",
      "max",
      "--max-in-flight",
      "1",
      "--json",
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ...{ server: daemon.url, ended: "all sent", sent: 10, allowed: 5, denied: 5, failed: 0, degraded: 0 },
      ...{ compared: 10, agreed: 10, latency_ms: { p50: expect.any(Number) } },
    });
  });

  it("finds that a used-up server decides otherwise", async () => {
    const { code, out } = await run("@requests.rec", "--server", daemon.url, "--speed", "10x");
    expect(code).toBe(0);
    expect(out).toMatch(/^Everything was sent: 10 requests in /);
    expect(out).toContain("decided as recorded: 5 of 10 (50.0 %)");
  });

  it("shows what it would send, and sends nothing, in a dry run", async () => {
    const { out } = await run("@access.log", "--dry-run", "--speed", "3x", "--server", "http://127.0.0.1:1");
    expect(out).toBe(
      "10 requests over 9s would be sent to http://127.0.0.1:1 in 3s, up to 3 a second. Nothing was sent.\n",
    );
  });

  it("sends to another machine only if that is named again", async () => {
    const server = ["--server", "http://203.0.113.9:8080"];
    const first = await run("@access.log", ...server);
    expect([first.code, first.err]).toEqual([2, expect.stringContaining("add --allow-remote 203.0.113.9")]);
    const other = await run("@access.log", ...server, "--allow-remote", "203.0.113.8");
    expect([other.code, other.err]).toEqual([2, expect.stringContaining("--allow-remote says 203.0.113.8")]);
    expect((await run("@access.log", ...server, "--allow-remote", "203.0.113.9", "--dry-run")).code).toBe(0);
  });

  it("ends at its bounds, and on Ctrl-C with what was done", async () => {
    const bounded = await run("@access.log", "--server", daemon.url, "--speed", "max", "--max-requests", "4", "--json");
    expect(JSON.parse(bounded.out)).toMatchObject({ ended: "count", sent: 4 });
    const slow = run("@access.log", "--server", daemon.url, "--speed", "0.01x");
    await expect.poll(() => signals.listenerCount("SIGINT")).toBeGreaterThan(0);
    signals.emit("SIGINT");
    const { code, out } = await slow;
    expect(code).toBe(1);
    expect(out).toMatch(/^Interrupted: this was sent so far: [01] requests in /);
  });

  it.each([
    ["--speed", "fast", "--speed is"],
    ["--max-rate", "0", "--max-rate is"],
    ["--for", "1ms", "--for"],
  ])("refuses %s %s", async (flag, value, message) => {
    const { code, err } = await run("@access.log", flag, value);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("latencies", () => {
  it("have quantiles that are right to 2 %", () => {
    const counts = new LatencyCounts();
    for (let ms = 1; ms <= 1000; ms++) counts.add(ms);
    const { p50, p99, max } = counts.report;
    expect(Math.abs(p50 / 500 - 1)).toBeLessThan(0.021);
    expect(Math.abs(p99 / 990 - 1)).toBeLessThan(0.021);
    expect(max).toBe(1000);
  });
});
