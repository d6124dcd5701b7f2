import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { RecordingChangeBody, RecordingListBody, SimulationBody } from "@sluice/protocol/admin";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let daemon: Daemon;

const policies = `policies:
  - id: orders
    match: { endpoint: /orders }
    limits: [{ by: [user], windows: [100/h] }]
  - id: search
    match: { endpoint: /search }
    limits: [{ by: [user], windows: [100/h] }]
default: none
`;

async function start(more: Readonly<Record<string, string>>): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const store = `sqlite:${join(folder, "store.db")}`;
  const env = { SLUICE_ADMIN_TOKEN_FILE: join(folder, "token") };
  const reading = parseSettings(env, { httpPort: "0", grpcPort: "off", adminPort: "0", store, config, ...more });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-what-if-"));
  daemon = await start({ recordings: join(folder, "recordings") });
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

async function ask<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
  const answer = await fetch(`${daemon.addresses.admin[0]}/api/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${daemon.firstToken?.token}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as T };
}

async function send(endpoint: string, user: string, times: number): Promise<void> {
  const checks = Array.from({ length: times }, () => ({ dimensions: { endpoint, user } }));
  const headers = { "content-type": "application/json" };
  await fetch(`${daemon.url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
}

async function simulate(request: unknown): Promise<SimulationBody> {
  const { status, body } = await ask<SimulationBody>("POST", "simulations", request);
  expect([status, body]).toEqual([202, expect.objectContaining({ progress: expect.any(Number) })]);
  let found = body;
  await expect
    .poll(async () => {
      found = (await ask<SimulationBody>("GET", `simulations/${body.id}`)).body;
      return found.state;
    })
    .toMatch(/done|failed/);
  return found;
}

interface Document {
  readonly identity?: { readonly exact: boolean };
  readonly result: { readonly requests: number; readonly flips: unknown; readonly hurt: { readonly top: unknown } };
}

const stricter = "id: orders\nmatch: { endpoint: /orders }\nlimits: [{ by: [user], windows: [3/h] }]\n";
const log = Array.from(
  { length: 8 },
  (_, i) => `203.0.113.7 - - [31/Jan/2026:12:00:0${i} +0000] "GET /orders HTTP/1.1" 200 17 "-" "-"\n`,
).join("");

describe("what-if over the admin API", () => {
  it("records, and simulates one policy's new version on what was recorded", async () => {
    const started = await ask<RecordingChangeBody>("POST", "recordings", { for_ms: 600_000, why: "before the sale" });
    expect(started).toMatchObject({ status: 201, body: { recording: { state: "recording", requests: 0 } } });
    const { id } = started.body.recording;
    expect((await ask("POST", "recordings")).status).toBe(409);
    await send("/orders", "u1", 5);
    await send("/search", "u1", 5);
    const stopped = await ask<RecordingChangeBody>("POST", `recordings/${id}/stop`);
    expect(stopped.body.recording).toMatchObject({ state: "done", end_reason: "stopped", requests: 10, dropped: 0 });

    const { document, ...view } = await simulate({ source: { recording: id }, candidate: { policies: [stricter] } });
    expect(view).toMatchObject({ state: "done", progress: 1, requests: 10, recording: id });
    const { identity, result } = document as Document;
    expect(identity).toMatchObject({ exact: true, expected_exact: true });
    expect(result.flips).toEqual({ allowed_allowed: 8, allowed_denied: 2, denied_allowed: 0, denied_denied: 0 });
    expect(result.hurt.top).toMatchObject([{ policy: "orders", subject: "u1", newly_denied: 2 }]);

    const list = (await ask<RecordingListBody>("GET", "recordings")).body;
    expect(list).toMatchObject({ enabled: true, items: [{ id, state: "done", requests: 10 }] });
    const actions = (await ask<{ items: { action: string; why: string }[] }>("GET", "audit?kind=recording")).body.items;
    expect(actions.map(({ action, why }) => [action, why])).toEqual([
      ["recording.stop", ""],
      ["recording.start", "this server is recording already; stop that recording first"],
      ["recording.start", "before the sale"],
    ]);
    expect((await ask("DELETE", `recordings/${id}`)).status).toBe(200);
    expect((await ask("GET", `recordings/${id}`)).status).toBe(404);
  });

  it("simulates a whole file on a log that is sent along, compressed or not", async () => {
    const file = "policies: [{ id: api, limits: [{ by: [ip], windows: [2/h] }] }]";
    for (const source of [{ log }, { log_base64: gzipSync(log).toString("base64") }]) {
      const { document } = await simulate({ source, candidate: { file }, now: "recorded", find_limit: "api" });
      const { identity, result } = document as Document;
      expect(identity).toBeUndefined();
      expect(result).toMatchObject({ requests: 8, flips: { allowed_denied: 6 }, limits: { policy: "api" } });
    }
  });

  it("says why a simulation failed", async () => {
    const wrong = await simulate({ source: { log }, candidate: { file: "policies: [{ id: api, limit: 1 }]" } });
    expect(wrong).toMatchObject({ state: "failed", error: { message: expect.stringContaining("limit") } });
    const nonsense = await simulate({ source: { log: "hello\nworld\n" }, candidate: { policies: [stricter] } });
    expect(nonsense).toMatchObject({ state: "failed", error: { message: expect.stringContaining("none of 2 lines") } });
  });

  it.each([
    [{ source: {}, candidate: { file: "x" } }, "source: must have one"],
    [{ source: { log: "x" }, candidate: {} }, "candidate: must have one"],
    [{ source: { recording: "0123456789abc" }, candidate: { file: "x" } }, "recording 0123456789abc does not exist"],
    [{ source: { recording: "../../etc/passwd" }, candidate: { file: "x" } }, "does not exist"],
  ])("refuses %j", async (request, message) => {
    const { status, body } = await ask<{ detail: string }>("POST", "simulations", request);
    expect([status >= 400, body.detail]).toEqual([true, expect.stringContaining(message)]);
  });

  it("cancels a simulation, and forgets it", async () => {
    const request = { source: { log: log.repeat(3_000) }, candidate: { policies: [stricter] }, find_limit: "orders" };
    const { body } = await ask<SimulationBody>("POST", "simulations", request);
    const cancelled = await ask<SimulationBody>("DELETE", `simulations/${body.id}`);
    expect(cancelled.body.state).toBe("cancelled");
    expect((await ask("DELETE", `simulations/${body.id}`)).status).toBe(200);
    expect((await ask("GET", `simulations/${body.id}`)).status).toBe(404);
  });
});
