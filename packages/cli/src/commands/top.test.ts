import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { HotKeysBody } from "@sluice/protocol/admin";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";
import { noPaint } from "../terminal/paint.ts";
import { renderHotKeys } from "./render-hot-keys.ts";

const patience = { timeout: 30_000, interval: 20 };
const policies =
  "policies: [{ id: api, match: { endpoint: /api }, limits: [{ by: [user], windows: [1000/h] }], on_failure: open }]\n";

let folder: string;
let daemon: Daemon;
let url: string;
let token: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-top-"));
  const seed = join(folder, "seed.yaml");
  await writeFile(seed, policies);
  const store = `sqlite:${join(folder, "store.db")}`;
  const reading = parseSettings(
    { SLUICE_NODE_NAME: "here" },
    { httpPort: "0", grpcPort: "off", adminPort: "0", store, seed },
  );
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  url = daemon.addresses.admin[0]!;
  token = daemon.firstToken!.token;
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

async function ask(user: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await daemon.limiter.check({ dimensions: { user, endpoint: "/api" } });
}

/** What is shown at a terminal, or without one. */
interface Seen {
  out: string;
  err: string;
  readonly stdin: PassThrough & { isTTY: boolean; setRawMode(raw: boolean): void };
  readonly signals: EventEmitter;
  /** Whether keys come one by one. */
  raw: boolean;
  code: Promise<number>;
}

function top(
  words: readonly string[],
  { terminal, env }: { terminal?: { columns: number; rows: number }; env?: Record<string, string> } = {},
): Seen {
  const seen: Omit<Seen, "code"> = {
    out: "",
    err: "",
    raw: false,
    signals: new EventEmitter(),
    stdin: Object.assign(new PassThrough(), {
      isTTY: terminal !== undefined,
      setRawMode(raw: boolean): void {
        seen.raw = raw;
      },
    }),
  };
  const code = runProgram({
    args: ["top", ...words],
    env: { SLUICE_ADMIN_URL: url, SLUICE_TOKEN: token, NO_COLOR: "1", ...env },
    terminal: {
      stdout: {
        write: (text: string) => (seen.out += text),
        ...(terminal !== undefined && { isTTY: true, ...terminal }),
      },
      stderr: { write: (text: string) => (seen.err += text) },
      stdin: seen.stdin,
    },
    signals: seen.signals,
  });
  return Object.assign(seen, { code });
}

const screen = { columns: 100, rows: 24 };
const opened = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const restored = "\u001b[?7h\u001b[?25h\u001b[?1049l";
/** What stands on the screen since it was drawn last. */
const drawn = ({ out }: Seen): string => out.slice(out.lastIndexOf("\u001b[H"));

describe("sluice top", () => {
  it("prints one table if there is no terminal, the hottest first", async () => {
    await ask("whale", 4_000);
    await ask("minnow", 500);
    const seen = top([]);
    expect(await seen.code, seen.err).toBe(0);
    const [summary, , head, first, second] = seen.out.split("\n");
    expect(summary).toMatch(/^1 node: [\d.]+ decisions a second, [\d.]+ denied\.$/);
    expect(head).toBe("policy  scope  subject  per second  denied/s  share");
    expect(first).toMatch(/^api {5}user {3}whale +[\d.]+ +[\d.]+ {2}\[#+-*\] \d+%$/);
    expect(second).toMatch(/^api {5}user {3}minnow +[\d.]+ +- {2}\[#*-*\] \d+%$/);
    expect(seen.out).not.toContain("\u001b");
    expect(seen.raw).toBe(false);
  });

  it("orders by denials, counts, and prints JSON", async () => {
    await ask("minnow", 200);
    await ask("whale", 4_000);
    await ask("shark", 2_500);
    const denied = top(["--by", "denials", "--json", "--node", "here"]);
    expect(await denied.code, denied.err).toBe(0);
    const { by, items, nodes } = JSON.parse(denied.out) as HotKeysBody;
    expect([by, nodes.reported, nodes.silent]).toEqual(["denials", 1, 0]);
    expect(items.map(({ subject }) => subject)).toEqual(["whale", "shark"]);
    const one = top(["--count", "1", "--json"]);
    expect(await one.code, one.err).toBe(0);
    expect((JSON.parse(one.out) as HotKeysBody).items).toMatchObject([{ policy: "api", scope: "user", nodes: 1 }]);
  });

  it("is drawn again and again in a terminal, and leaves it as it was", async () => {
    await ask("whale", 1_000);
    const seen = top(["--every", "200ms"], { terminal: screen });
    await expect.poll(() => seen.out, patience).toContain("whale");
    expect(seen.out.startsWith(opened)).toBe(true);
    expect(seen.raw).toBe(true);
    // It receives what came later.
    await expect
      .poll(async () => {
        await ask("newcomer", 200);
        return drawn(seen);
      }, patience)
      .toContain("newcomer");
    seen.stdin.write("d");
    await expect.poll(() => drawn(seen), patience).toMatch(/^\S*by denials[\s\S]*share of denials/);
    expect(seen.out).not.toContain(restored);
    seen.stdin.write("q");
    expect(await seen.code, seen.err).toBe(0);
    expect(seen.out.endsWith(restored)).toBe(true);
    expect(seen.raw).toBe(false);
    expect(seen.stdin.listenerCount("data")).toBe(0);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) expect(seen.signals.listenerCount(signal)).toBe(0);
  });

  it.each([
    ["Ctrl-C", (seen: Seen) => seen.stdin.write("\u0003")],
    ["the end of input", (seen: Seen) => seen.stdin.end()],
    ["SIGTERM", (seen: Seen) => seen.signals.emit("SIGTERM")],
    ["SIGINT", (seen: Seen) => seen.signals.emit("SIGINT")],
  ])("ends by %s, also while it waits for the next look", async (_name, end) => {
    const seen = top(["--every", "1m"], { terminal: screen });
    await expect.poll(() => seen.out, patience).toContain("decisions a second");
    end(seen);
    expect(await seen.code, seen.err).toBe(0);
    expect(seen.out.endsWith(restored)).toBe(true);
    expect(seen.raw).toBe(false);
  });

  it("draws no more lines than there are", async () => {
    for (let i = 0; i < 12; i++) await ask(`user-${i}`, 300);
    const seen = top(["--every", "1m"], { terminal: { columns: 60, rows: 8 } });
    await expect.poll(() => seen.out, patience).toContain("per second");
    expect(drawn(seen).split("\n")).toHaveLength(8);
    seen.stdin.write("q");
    await seen.code;
  });

  it.each([
    ["--once", ["--once"], {}],
    ["a dumb terminal", [], { TERM: "dumb" }],
  ])("prints one table with %s", async (_name, words, env: Record<string, string>) => {
    const seen = top(words, { terminal: screen, env });
    expect(await seen.code, seen.err).toBe(0);
    expect(seen.out).toContain("decisions a second");
    expect(seen.out).not.toContain(opened);
  });

  it("asks a server of itself, whose subjects are hashes without a token", async () => {
    await ask("whale", 1_000);
    const hashed = top(["--server", daemon.url], { env: { SLUICE_TOKEN: "", SLUICE_ADMIN_URL: "http://127.0.0.1:1" } });
    expect(await hashed.code, hashed.err).toBe(0);
    expect(hashed.out).toMatch(/^api {5}user {3}#[0-9a-f]{12} /m);
    expect(hashed.out).not.toContain("whale");
    expect(hashed.out).toContain("Subjects are hashes, because the server was asked without a token.");
  });

  it.each([
    [["--by", "name"], '--by is "name"; it should be rate or denials'],
    [["--count", "101"], '--count is "101"; it should be a whole number from 1 to 100'],
    [["--count", "none"], "--count"],
    [["--every", "10ms"], '--every is "10ms"; it should be a duration from 200ms to 1m'],
    [["--every", "soon"], "--every"],
    [["--server", "http://127.0.0.1:8080", "--node", "here"], "--node"],
  ])("refuses %j as wrong usage", async (words, message) => {
    const seen = top(words);
    expect(await seen.code).toBe(2);
    expect(seen.err).toContain(message);
    expect(seen.out).toBe("");
  });

  it("ends with the exit codes of its neighbours", async () => {
    const nobody = top([], { env: { SLUICE_TOKEN: "" }, terminal: screen });
    expect([await nobody.code, nobody.out]).toEqual([3, ""]);
    expect(nobody.err).toContain("needs a token");
    const nowhere = top([], { env: { SLUICE_ADMIN_URL: "http://127.0.0.1:1" } });
    expect(await nowhere.code).toBe(5);
    const unknown = top(["--node", "elsewhere"]);
    expect(await unknown.code).toBe(1);
    expect(unknown.err).toContain('node "elsewhere" does not exist');
  });
});

describe("sluice top, where a server goes away", () => {
  let late: Daemon;

  beforeEach(async () => {
    const reading = parseSettings({}, { httpPort: "0", grpcPort: "off" });
    if (reading.kind === "problems") throw new Error("settings");
    late = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  });
  afterEach(() => late.close());

  it("shows what it knew, and asks on", async () => {
    const seen = top(["--server", late.url, "--every", "200ms"], { terminal: screen, env: { SLUICE_TOKEN: "" } });
    await expect.poll(() => seen.out, patience).toContain("decisions a second");
    await late.close();
    await expect.poll(() => drawn(seen), patience).toMatch(/no answer from[\s\S]*decisions a second/);
    seen.stdin.write("q");
    expect(await seen.code).toBe(0);
  });
});

describe("sluice top, of a server that is slow or breaks off", () => {
  let answer: (by: string, response: ServerResponse) => void;
  let server: Server;
  const nothing = (by: string): string =>
    JSON.stringify({
      ...{ by, items: [], total: { per_second: 0, denied_per_second: 0 }, nodes: { reported: 1, oldest_ms: 0 } },
    });
  let address: string;

  beforeEach(async () => {
    server = createServer((request, response) => {
      response.setHeader("content-type", "application/json");
      answer(/by=(\w+)/.exec(request.url ?? "")![1]!, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const watch = (every: string): Seen =>
    top(["--server", address, "--every", every], { terminal: screen, env: { SLUICE_TOKEN: "" } });

  it.each([
    ["breaks off", (response: ServerResponse) => response.write("{", () => response.destroy())],
    ["is cut off", (response: ServerResponse) => response.end("{")],
  ])("asks on where an answer %s", async (_name, fail) => {
    let fine = true;
    answer = (by, response) => (fine ? response.end(nothing(by)) : fail(response));
    const seen = watch("200ms");
    await expect.poll(() => seen.out, patience).toContain("decisions a second");
    fine = false;
    await expect.poll(() => drawn(seen), patience).toMatch(/no answer from|not as Sluice does/);
    fine = true;
    await expect.poll(() => drawn(seen), patience).toMatch(/quit\S*\n/);
    seen.stdin.write("q");
    expect(await seen.code, seen.err).toBe(0);
  });

  it("changes the order at once when a key is pressed while it asks", async () => {
    const asked: string[] = [];
    let late: ServerResponse | undefined;
    answer = (by, response) => {
      asked.push(by);
      if (asked.length === 2) late = response;
      else response.end(nothing(by));
    };
    const seen = watch("1m");
    await expect.poll(() => seen.out, patience).toContain("decisions a second");
    // A key that means nothing looks anew.
    seen.stdin.write("x");
    await expect.poll(() => late, patience).toBeDefined();
    seen.stdin.write("d");
    late!.end(nothing("rate"));
    await expect.poll(() => drawn(seen), patience).toContain("No denials");
    expect(asked).toEqual(["rate", "rate", "denials"]);
    seen.stdin.write("q");
    expect(await seen.code, seen.err).toBe(0);
  });
});

describe("a table of hot keys", () => {
  const body: HotKeysBody = {
    by: "rate",
    items: [
      {
        ...{ policy: "api", scope: "user", subject: "u1\u001b[31m\n", per_second: 5210.44, denied_per_second: 0.2 },
        ...{ error_per_second: 0, nodes: 2 },
      },
      {
        ...{ policy: "api", scope: "global", subject: "", per_second: 40, denied_per_second: 0 },
        ...{ error_per_second: 12, nodes: 1 },
      },
    ],
    total: { per_second: 10_000, denied_per_second: 0.2 },
    nodes: { reported: 3, silent: 1, oldest_ms: 3_900 },
  };

  it("says who told, how long ago, and what is not sure", () => {
    expect(renderHotKeys(body, undefined, noPaint)).toBe(
      `3 nodes, reported up to 4 s ago, 1 more did not report: 10000 decisions a second, 0.2 denied.

policy  scope   subject         per second  denied/s  share
api     user    u1\\u001b[31m          5210       0.2  [##########----------] 52%
api     global  (all requests)       ~40.0         -  [--------------------] 0%
`,
    );
  });

  it("says that there is nothing to tell", () => {
    const empty = {
      ...body,
      items: [],
      total: { per_second: 0, denied_per_second: 0 },
      nodes: { reported: 1, oldest_ms: 0 },
    };
    expect(renderHotKeys(empty, undefined, noPaint)).toBe(
      "1 node: 0 decisions a second, 0 denied.\n\nNothing was asked for more than once in the last seconds.\n",
    );
    expect(renderHotKeys({ ...empty, by: "denials" }, undefined, noPaint)).toContain("No denials");
  });
});
