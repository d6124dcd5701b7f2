import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AdminClient, createAdminClient } from "@sluice/client/admin";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";
import { noPaint } from "../terminal/paint.ts";
import { renderUsageEvent } from "./usage-tail.ts";

let folder: string;
let daemon: Daemon;
let token: string;
let stopTails: (() => Promise<unknown>)[];

const policies = `policies:
  - id: orders
    owner: shop
    events: each
    match: { endpoint: /orders }
    limits: [{ by: [tenant, user], windows: [2/d] }]
  - id: search
    events: each
    match: { endpoint: /search }
    limits: [{ by: [tenant], windows: [100/d] }]
`;

async function start(adminPort: string): Promise<void> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const store = `sqlite:${join(folder, "store.db")}`;
  const env = { SLUICE_ADMIN_TOKEN_FILE: join(folder, "token") };
  const reading = parseSettings(env, { httpPort: "0", grpcPort: "off", adminPort, store, config });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  token = daemon.firstToken?.token ?? token;
}

beforeEach(async () => {
  stopTails = [];
  folder = await mkdtemp(join(tmpdir(), "sluice-tail-"));
  await start("0");
});

afterEach(async () => {
  await Promise.all(stopTails.map((stop) => stop()));
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

interface RunningTail {
  readonly out: () => string;
  readonly err: () => string;
  /** Presses Ctrl-C, and resolves with the exit code. */
  stop(): Promise<number>;
}

/** Runs until it says that it watches. */
async function runTail(words: string): Promise<RunningTail> {
  let out = "";
  let err = "";
  const signals = new EventEmitter();
  const ended = runProgram({
    args: `usage tail ${words}`.trim().split(" "),
    env: { SLUICE_ADMIN_URL: daemon.addresses.admin[0], SLUICE_TOKEN: token },
    terminal: {
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
    },
    signals,
  });
  const stop = (): Promise<number> => {
    signals.emit("SIGINT");
    return ended;
  };
  stopTails.push(stop);
  await expect.poll(() => err, { timeout: 20_000 }).toContain("Watching the usage events");
  return { out: () => out, err: () => err, stop };
}

async function check(endpoint: string, tenant: string, times = 1): Promise<void> {
  const dimensions = { tenant, user: "u1", endpoint };
  const checks = Array.from({ length: times }, (_, i) => ({ dimensions, id: `${endpoint} ${tenant} ${i}` }));
  for (const one of checks) {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ checks: [one] });
    const response = await fetch(`${daemon.url}/v1/check`, { method: "POST", headers, body });
    await response.text();
  }
}

const client = (secret = token): AdminClient =>
  createAdminClient({ server: daemon.addresses.admin[0]!, token: secret, retries: 0 });

const within = { timeout: 20_000 };

describe("sluice usage tail", () => {
  it("prints a line for each event, until Ctrl-C", async () => {
    const tail = await runTail("");
    await check("/orders", "acme", 3);
    await expect.poll(() => tail.out().split("\n").length, within).toBe(4);
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`;
    const allowed = `${time} {2}allowed {2}orders {2}acme\\|u1 {2}cost 1 {2}within_limits\n`;
    const denied = `${time} {2}denied {3}orders {2}acme\\|u1 {2}cost 1 {2}over_limit {2}by orders/tenant,user\n`;
    expect(tail.out()).toMatch(new RegExp(`^${allowed}${allowed}${denied}$`));
    expect(await tail.stop()).toBe(0);
    expect(tail.err()).toMatch(/^Watching the usage events of the node at http:.*\n$/);
  }, 60_000);

  it("shows one policy or one subject, as JSON lines", async () => {
    const ofPolicy = await runTail("--policy search --json");
    const ofSubject = await runTail("--subject globex --json");
    const ofKey = await runTail("--subject acme|u1 --json");
    await check("/orders", "acme");
    await check("/search", "acme");
    await check("/search", "globex");
    const read = (tail: RunningTail): readonly string[] =>
      tail
        .out()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .map(({ subject, data }) => `${data.policy} ${subject}`);
    await expect.poll(() => read(ofPolicy), within).toEqual(["search acme", "search globex"]);
    await expect.poll(() => read(ofSubject), within).toEqual(["search globex"]);
    await expect.poll(() => read(ofKey), within).toEqual(["orders acme"]);
  }, 60_000);

  it("says that the server restarted, and continues", async () => {
    const tail = await runTail("");
    const { port } = new URL(daemon.addresses.admin[0]!);
    await daemon.close();
    await expect.poll(tail.err, within).toContain("Trying again every second");
    await start(port);
    await expect.poll(tail.err, within).toContain("The server answers again.\nThe server has restarted");
    await check("/search", "acme");
    await expect.poll(tail.out, within).toContain("  allowed  search  acme  ");
    expect(tail.err().match(/Trying again/g)).toHaveLength(1);
    expect(await tail.stop()).toBe(0);
  }, 60_000);

  it("ends with an error if the first request is refused", async () => {
    let err = "";
    const code = await runProgram({
      args: ["usage", "tail"],
      env: { SLUICE_ADMIN_URL: daemon.addresses.admin[0], SLUICE_TOKEN: "wrong" },
      terminal: { stdout: { write() {} }, stderr: { write: (text: string) => (err += text) } },
      signals: new EventEmitter(),
    });
    expect(code).toBe(3);
    expect(err).toContain("not accepted");
  });

  it("shows what a summary stands for, and what denied it", () => {
    const data = { kind: "summary", key: "", cost: 0, allowed: false, ts: 0, requests: 7, reason: "forced" } as const;
    const event = { specversion: "1.0", type: "t", source: "/", id: "1", time: "2026-11-18T16:00:00.000Z" };
    const rendered = renderUsageEvent(
      { ...event, datacontenttype: "application/json", data: { ...data, node: "n" } },
      noPaint,
    );
    expect(rendered).toBe("2026-11-18 16:00:00.000  denied   -  -  cost 0  7 requests  forced");
  });
});

describe("the usage events of the admin API", () => {
  it("are an editor's only if its team owns the policy", async () => {
    const { usage, tokens } = client();
    const made = await tokens.make({ name: "ed", role: "editor", team: "shop" });
    const editor = (): Promise<{ readonly next: string }> => client(made.token.token).usage.events();
    // The server accepts a new token a moment later.
    await expect.poll(() => editor().then(() => "ok", String), within).toBe("ok");
    const [all, own] = [await usage.events(), await editor()];
    await check("/search", "acme");
    await check("/orders", "acme");
    const shown = async (api: AdminClient, after: string): Promise<readonly unknown[]> =>
      (await api.usage.events({ after, waitMs: 20_000 })).events.map(({ data }) => data.policy);
    expect(await shown(client(), all.next)).toEqual(["search", "orders"]);
    expect(await shown(client(made.token.token), own.next)).toEqual(["orders"]);
  }, 60_000);

  it("refuse a cursor that is none, and more waiting requests than there is room for", async () => {
    const { usage } = client();
    await expect(usage.events({ after: "x" })).rejects.toMatchObject({ status: 400, code: "invalid_request" });
    const { next } = await usage.events();
    const ending = new AbortController();
    const waiting = Array.from({ length: 33 }, () =>
      usage.events({ after: next, waitMs: 20_000, signal: ending.signal }),
    );
    const refused = await Promise.any(
      waiting.map((one) =>
        one.then(
          () => Promise.reject(),
          (error) => error,
        ),
      ),
    );
    expect(refused).toMatchObject({ status: 503, code: "overloaded" });
    expect(refused.message).toContain("32 requests wait for usage events here, which is the most");
    ending.abort();
    await Promise.allSettled(waiting);
  }, 60_000);

  it("end their wait when the server stops", async () => {
    const { usage } = client();
    const { next } = await usage.events();
    const waiting = usage.events({ after: next, waitMs: 20_000 });
    // A request that is served afterwards shows that the other one waits by now.
    await usage.events();
    await daemon.close();
    expect(await waiting).toMatchObject({ events: [], missed: 0, restarted: false });
    await start("0");
  }, 60_000);
});
