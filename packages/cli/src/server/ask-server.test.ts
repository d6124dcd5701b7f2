import { createHash } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";

const roles = ["check", "viewer", "operator"] as const;
const createToken = (role: string): string => `secret-of-${role}`;

let folder: string;
let daemon: Daemon;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-ask-"));
  const config = join(folder, "policies.yaml");
  const tokens = join(folder, "tokens.yaml");
  await writeFile(
    config,
    `policies:
  - { id: login, limits: [{ by: [user], windows: [1/h], missing: skip }], on_failure: open }
  - { id: checkout, match: { endpoint: /checkout }, limits: [{ by: [ip], windows: [1/h] }], on_failure: open }
default: none
`,
  );
  const entries = roles.map((role) => {
    const sha256 = createHash("sha256").update(createToken(role)).digest("hex");
    return `  - { name: the-${role}, role: ${role}, sha256: "${sha256}" }\n`;
  });
  await writeFile(tokens, `tokens:\n${entries.join("")}`);
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", respPort: "0", config, tokens });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(words: string, role?: string): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const code = await runProgram({
    args: [...words.split(" "), "--server", daemon.url],
    env: role === undefined ? {} : { SLUICE_TOKEN: createToken(role) },
    terminal: { stdout: { write: (text) => (out += text) }, stderr: { write: (text) => (err += text) } },
    signals: new EventEmitter(),
  });
  return { code, out, err };
}

describe("sluice status", () => {
  it("tells people how a server does", async () => {
    const { code, out } = await run("status", "viewer");
    expect(code).toBe(0);
    expect(out).toMatch(/^status {4}ready\nserver {4}Sluice \S+, Node \S+, process \d+\nup for {4}\d+s\n/);
    expect(out).toMatch(/^policies {2}2, generation 1, current, for \d+s, from .*policies\.yaml$/m);
    expect(out).toMatch(/^counters {2}in memory, \d+ of at most 4000000$/m);
    expect(out).toMatch(/^waiting {3}0 of at most 10000\nshed {6}none\nhttp {6}http:\S+, 1 connection$/m);
    expect(out).toMatch(/^grpc {6}grpc:\S+, 0 connections\nresp {6}redis:\S+, 0 connections$/m);
  });

  it("tells programs", async () => {
    const { code, out } = await run("status --json", "viewer");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ status: "ready", policies: { count: 2 }, shed: expect.anything() });
  });

  it("needs a token where the server asks for one, and says where it goes", async () => {
    expect(await run("status")).toMatchObject({ code: 2, err: expect.stringMatching(/unauthenticated.*SLUICE_TOKEN/) });
    expect(await run("status", "check")).toMatchObject({ code: 2, err: expect.stringMatching(/role viewer/) });
  });
});

describe("sluice reset", () => {
  it("forgets the counters of a subject, for operators alone", async () => {
    expect((await run("check user=u1", "check")).code).toBe(0);
    expect((await run("check user=u1", "check")).code).toBe(1);
    expect(await run("reset user=u1", "check")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/needs role operator, and \S+ has role check; ask with a token of that role/),
    });
    expect((await run("check user=u1", "check")).code).toBe(1);
    expect(await run("reset user=u1", "operator")).toMatchObject({
      code: 0,
      out: "Reset, with blocks lifted:\n  login / user: u1\n",
    });
    expect((await run("check user=u1", "check")).code).toBe(0);
  });

  it("lists what it reset, and ends with 1 where that is nothing", async () => {
    expect((await run("check user=u2 endpoint=/checkout ip=203.0.113.7", "check")).code).toBe(0);
    // Only a request to /checkout is counted by address.
    const nothing = await run("reset ip=203.0.113.7", "operator");
    expect(nothing).toMatchObject({ code: 1, out: "Nothing was reset: no policy counts such a request.\n" });
    expect(nothing.err).toMatch(/no endpoint.*sluice subject reset ip=203\.0\.113\.7\n$/);
    const json = await run("reset ip=203.0.113.7 --json", "operator");
    expect({ code: json.code, body: JSON.parse(json.out) }).toEqual({ code: 1, body: { counters: [] } });
    const whole = await run("reset ip=203.0.113.7 endpoint=/checkout", "operator");
    expect(whole).toEqual({ code: 0, out: "Reset, with blocks lifted:\n  checkout / ip: 203.0.113.7\n", err: "" });
  });

  it("names what is wrong", async () => {
    expect(await run("reset user", "operator")).toMatchObject({ code: 2, err: expect.stringMatching(/name=value/) });
    const { code, err } = await run("reset user=u1 --policy nothing", "operator");
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringMatching(/policy_not_found/) });
  });
});
