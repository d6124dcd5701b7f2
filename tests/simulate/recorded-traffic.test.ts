import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";
import { parseSettings, type Settings, startDaemon } from "@sluice/server";
import { type IdentityReport, IdentityRun, type RecordingFacts, Simulation } from "@sluice/simulate";
import { fileSource, findSampledBy, type LogSource, readBytes, readLogs, streamSource } from "@sluice/simulate/logs";
import { startServer, type TestServer } from "@sluice/test-servers";
import fc from "fast-check";
import { parsePolicies } from "sluice";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-recorded-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const silent = { debug() {}, info() {}, warn() {}, error() {} };

type Body = Readonly<Record<string, unknown>>;

interface Traffic {
  readonly policies: readonly Body[];
  /** Sent one call after the other in each lane, the lanes at once. */
  readonly lanes: readonly (readonly (readonly Body[])[])[];
}

const algorithms = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"];
const drawWindows = (algorithm: string): fc.Arbitrary<readonly string[]> =>
  fc.constantFrom(["3/s"], ["5/m"], ["2/s", "6/m"], ["20/h"], algorithm === "fixed_window" ? ["7/d"] : ["4/10s"]);
const limit = fc.constantFrom(...algorithms).chain((algorithm) =>
  fc.record({
    algorithm: fc.constant(algorithm),
    by: fc.constantFrom(["user"], ["tenant"], ["ip"], ["tenant", "user"], []),
    windows: drawWindows(algorithm),
  }),
);
const policy = fc.record({
  match: fc.constantFrom({}, { endpoint: "/orders" }, { endpoint: "/search/**" }, { tenant: "acme" }),
  limits: fc.uniqueArray(limit, { minLength: 1, maxLength: 2, selector: ({ by }) => by.join() }),
  on_failure: fc.constant("open"),
});
const check = fc.record(
  {
    dimensions: fc.record({
      user: fc.constantFrom("u1", "u2", "u3"),
      tenant: fc.constantFrom("acme", "globex"),
      ip: fc.constantFrom("203.0.113.7", "2001:db8::1"),
      endpoint: fc.constantFrom("/orders", "/search/a", "/other"),
    }),
    cost: fc.integer({ min: 1, max: 3 }),
    preview: fc.constant(true),
    id: fc.constantFrom("a", "b", "c"),
  },
  { requiredKeys: ["dimensions"] },
);
const traffic: fc.Arbitrary<Traffic> = fc.record({
  policies: fc
    .array(policy, { minLength: 1, maxLength: 4 })
    .map((all) => all.map((one, i) => ({ id: `p${i}`, ...one }))),
  lanes: fc.array(fc.array(fc.array(check, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 4 }), {
    minLength: 2,
    maxLength: 4,
  }),
});

async function readSettings(flags: Readonly<Record<string, string>>): Promise<Settings> {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", ...flags });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

/** Records traffic on a real server, and returns the recording's path. */
async function record(
  { policies, lanes }: Traffic,
  flags: Readonly<Record<string, string>> = {},
  meanwhile: (url: string) => Promise<unknown> = async () => undefined,
): Promise<string> {
  const config = join(folder, "policies.json");
  const path = join(folder, "requests.rec");
  await writeFile(config, JSON.stringify({ policies }));
  const daemon = await startDaemon({ settings: await readSettings({ config, record: path, ...flags }), log: silent });
  try {
    const send = async (checks: readonly Body[]): Promise<void> => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${daemon.url}/v1/check`, {
        method: "POST",
        headers,
        body: JSON.stringify({ checks }),
      });
      expect(answer.status).toBe(200);
      await answer.text();
    };
    await Promise.all(
      lanes.map(async (calls) => {
        for (const checks of calls) await send(checks);
      }),
    );
    await meanwhile(daemon.url);
  } finally {
    await daemon.close();
  }
  return path;
}

async function replay(source: LogSource): Promise<IdentityReport> {
  let run: IdentityRun | undefined;
  await readLogs([source], (request) => run!.add(request), {
    onCarried(_carried, recordings: readonly RecordingFacts[]) {
      run = new IdentityRun({ recordings, sampledBy: findSampledBy(recordings) });
    },
  });
  return run!.finish();
}

const replayFile = async (path: string): Promise<IdentityReport> => replay(await fileSource(path));

async function readLines(path: string): Promise<readonly Record<string, unknown>[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of readBytes(await fileSource(path), () => {})) chunks.push(Buffer.from(chunk));
  const lines = Buffer.concat(chunks).toString().trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const takes = ({ preview }: Body): boolean => preview !== true;

/** How many of the checks a recording has: of each id that is allowed only the first. */
async function countRequests(path: string): Promise<number> {
  return (await readLines(path)).filter((line) => "d" in line).length;
}

const busy: Traffic = {
  policies: [{ id: "api", limits: [{ by: ["user"], windows: ["20/m"] }], on_failure: "open" }],
  lanes: [
    Array.from({ length: 5 }, () => Array.from({ length: 10 }, () => ({ dimensions: { user: "u1", tenant: "t" } }))),
  ],
};

describe("a recording of a server with counters in memory", () => {
  it("is reproduced exactly, whatever the policies and the traffic", { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (one) => {
        const path = await record(one);
        const identity = await replayFile(path);
        expect(identity.examples).toEqual([]);
        expect(identity).toMatchObject({ exact: true, expected_exact: true, causes: [] });
        const most = one.lanes.flat(2).filter(takes).length;
        expect(identity.requests).toBe(await countRequests(path));
        expect(identity.requests).toBeLessThanOrEqual(most);
      }),
      { numRuns: 5 },
    );
  });

  it("is not reproduced once a request is missing, and the difference is shown", async () => {
    const path = await record(busy);
    const lines = await readLines(path);
    const at = lines.findIndex((line) => "d" in line);
    const text = lines
      .filter((_, i) => i !== at)
      .map((line) => JSON.stringify(line))
      .join("\n");
    const identity = await replay(streamSource("mutated", toStream(Buffer.from(text))));
    expect(identity).toMatchObject({ requests: 49, exact: false, expected_exact: true });
    expect(identity.agreed).toBeLessThan(49);
    expect(identity.causes).toEqual([
      { cause: "unknown", requests: 49 - identity.agreed, message: expect.stringContaining("nothing") },
    ]);
    expect(identity.examples[0]?.recorded).toContain("allowed (within_limits) by api/user, 18 remaining");
  });

  it("goes by the policies that were in force, also when they changed", async () => {
    const config = join(folder, "policies.json");
    const policies = [{ id: "api", limits: [{ by: ["user"], windows: ["5/m"] }], on_failure: "open" }];
    const path = await record(busy, {}, async (url) => {
      await writeFile(config, JSON.stringify({ policies }));
      const remaining = async (): Promise<number> => {
        const checks = [{ dimensions: { user: "u2", tenant: "t" } }];
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`${url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
        return ((await answer.json()) as { answers: { decision: { limit: number } }[] }).answers[0]!.decision.limit;
      };
      await expect.poll(remaining).toBe(5);
    });
    expect(await replayFile(path)).toMatchObject({ exact: true, expected_exact: true });
    const generations = (await readLines(path)).filter(({ e }) => e === "policies");
    expect(generations.map(({ generation }) => generation)).toEqual([1, 2]);
  });

  it("says what changed its counters besides checks", async () => {
    const path = await record(busy, {}, async (url) => {
      const body = JSON.stringify({ dimensions: { user: "u3", tenant: "t" } });
      const answer = await fetch(`${url}/v1/charge`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      expect(answer.status).toBeLessThan(300);
      await fetch(`${url}/v1/check`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ checks: [{ dimensions: { user: "u3", tenant: "t" } }] }),
      });
    });
    const identity = await replayFile(path);
    expect(identity).toMatchObject({ requests: 51, agreed: 50, expected_exact: false });
    expect(identity.causes).toEqual([
      { cause: "changed_counters", requests: 1, message: expect.stringContaining("1 × charge") },
    ]);
  });

  it("has a part of the subjects whole, and leaves out limits that they share with others", async () => {
    const policies = [
      {
        id: "api",
        limits: [
          { by: ["user"], windows: ["3/m"] },
          { name: "all", by: [], windows: ["10000/m"] },
        ],
        on_failure: "open",
      },
    ];
    const users = Array.from({ length: 400 }, (_, i) => `u${i}`);
    const calls = Array.from({ length: 5 }, () => users.map((user) => ({ dimensions: { user } })));
    const sample = { recordShare: "25%", recordShareBy: "user", recordHash: "user" };
    const path = await record({ policies, lanes: [calls] }, sample);
    const lines = await readLines(path);
    const counts = new Map<string, number>();
    for (const { d } of lines as { d?: { user: string } }[])
      if (d !== undefined) counts.set(d.user, (counts.get(d.user) ?? 0) + 1);
    // A share of 400 subjects by a random key: further off than this once in millions of runs.
    expect(counts.size).toBeGreaterThan(50);
    expect(counts.size).toBeLessThan(160);
    expect(new Set(counts.values())).toEqual(new Set([5]));
    expect([...counts.keys()].every((user) => /^[0-9a-f]{24}$/.test(user))).toBe(true);
    const identity = await replayFile(path);
    expect(identity).toMatchObject({ exact: true, expected_exact: false });
    expect(identity.causes.map(({ cause }) => cause)).toEqual(["sampling", "hashed"]);

    let simulation: Simulation | undefined;
    await readLogs([await fileSource(path)], (request) => simulation!.add(request), {
      onCarried: (carried, recordings) => {
        const candidate = parsePolicies({ policies, default: "none" });
        simulation = new Simulation({ candidate, carried, sampledBy: findSampledBy(recordings) });
      },
    });
    const { left_out, flips } = simulation!.finish();
    expect(left_out.map(({ policy, scope, kind }) => [policy, scope, kind])).toEqual([["api", "all", "sampled"]]);
    expect(flips).toMatchObject({ allowed_denied: 0, denied_allowed: 0, denied_denied: 2 * counts.size });
  });

  it("hashes values in policies as in requests, so lists and matches still find them", async () => {
    const mallory = "mallory@example.com";
    const policies = [
      { id: "api", limits: [{ by: ["user"], windows: ["3/m"] }], deny: { user: [mallory] }, on_failure: "open" },
      { id: "own", match: { user: [mallory, "*"] }, limits: [{ by: [], windows: ["8/m"] }], on_failure: "open" },
    ];
    const users = [mallory, "alice@example.com", "bob@example.com"];
    const calls = Array.from({ length: 5 }, () => users.map((user) => ({ dimensions: { user } })));
    const path = await record({ policies, lanes: [calls] }, { recordHash: "user" });
    const lines = await readLines(path);
    expect(JSON.stringify(lines)).not.toContain("example.com");
    const denied = lines.filter(({ r }) => r === "deny_list");
    expect(denied).toHaveLength(5);
    expect(await replayFile(path)).toMatchObject({ requests: 15, exact: true });
  });

  it("has no secret, and can be read up to where it was cut off", async () => {
    const checks = Array.from({ length: 30 }, () => ({ dimensions: { api_key: "k-1234567890", user: "u1" } }));
    const path = await record({ ...busy, lanes: [[checks]] });
    const lines = await readLines(path);
    expect(JSON.stringify(lines)).not.toContain("k-1234567890");
    expect(lines.find((line) => "d" in line)?.d).toMatchObject({
      api_key: expect.stringMatching(/^sha256:[0-9a-f]{16}$/),
    });
    const text = `${lines
      .slice(0, -2)
      .map((line) => JSON.stringify(line))
      .join("\n")}\n`;
    const frame = await promisify(zstdCompress)(text);
    const torn = Buffer.concat([frame, frame.subarray(0, 40)]);
    const identity = await replay(streamSource("torn", toStream(torn)));
    expect(identity).toMatchObject({ exact: true, expected_exact: false });
    expect(identity.causes.map(({ cause }) => cause)).toEqual(["cut_off"]);
  });

  it("ends at its size, and says so", async () => {
    const users = Array.from({ length: 1_000 }, () => ({ dimensions: { user: Math.random().toString(36), x: "y" } }));
    const path = await record({ ...busy, lanes: [Array.from({ length: 12 }, () => users)] }, { recordBytes: "65536" });
    const lines = await readLines(path);
    expect(lines.at(-1)).toMatchObject({ e: "end", why: "size" });
    expect(await replayFile(path)).toMatchObject({ exact: true });
  });
});

describe("a recording of a server with counters on Valkey", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });

  afterAll(() => server.close());

  it("is reproduced exactly if they were empty, whatever the traffic", { timeout: 240_000 }, async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(traffic, async (one) => {
        run += 1;
        const flags = { redis: server.url, redisPrefix: `run${run}-`, leases: "off", deadlineMs: "30s" };
        const identity = await replayFile(await record(one, flags));
        expect(identity.examples).toEqual([]);
        expect(identity).toMatchObject({ exact: true, expected_exact: true });
      }),
      { numRuns: 4 },
    );
  });

  it("is not reproduced exactly if they were not empty, and that is named", async () => {
    const flags = { redis: server.url, redisPrefix: "used-", leases: "off", deadlineMs: "30s" };
    await record(busy, flags);
    const identity = await replayFile(await record(busy, flags));
    expect(identity).toMatchObject({ exact: false });
    expect(identity.causes).toEqual([
      {
        cause: "counters_not_empty",
        requests: identity.requests - identity.agreed,
        message: expect.stringContaining("may not have been empty"),
      },
    ]);
  });
});

async function* toStream(bytes: Buffer): AsyncIterable<Buffer> {
  yield bytes;
}
