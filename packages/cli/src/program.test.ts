import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { startServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram, type World } from "./program.ts";
import { version } from "./version.ts";

const example = fileURLToPath(new URL("../../../config/policies.yaml", import.meta.url));

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line. A word that begins with a dollar sign stands for a path, which may hold spaces. */
async function run(words: string, env: Record<string, string> = {}, world: Partial<World> = {}): Promise<Outcome> {
  let out = "";
  let err = "";
  const code = await runProgram({
    args: words
      .split(" ")
      .filter((word) => word !== "")
      .map((word) => paths[word] ?? word),
    // Its port is one for all, and another test may have it.
    env: { SLUICE_GRPC_PORT: "off", ...env },
    terminal: {
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
    },
    signals: new EventEmitter(),
    ...world,
  });
  return { code, out, err };
}

let folder: string;
let good: string;
let bad: string;
let daemon: Daemon;
const paths: Record<string, string> = { $example: example };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice program "));
  good = join(folder, "good.yaml");
  bad = join(folder, "bad.yaml");
  const surprising = join(folder, "surprising.yaml");
  const nowhere = join(folder, "nowhere.yaml");
  Object.assign(paths, { $good: good, $bad: bad, $surprising: surprising, $nowhere: nowhere });
  await writeFile(
    good,
    "policies:\n  - id: login\n    match: { endpoint: /login }\n    limits: [{ by: [ip], windows: [2/h] }]\n    on_failure: closed\ndefault: none\n",
  );
  await writeFile(bad, "policies:\n  - id: login\n    limit: []\n  - id: 7\n");
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config: good });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({
    settings: reading.settings,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

describe("sluice", () => {
  it("prints its version and its help, with every command and the exit codes", async () => {
    expect(await run("--version")).toEqual({ code: 0, out: `${version}\n`, err: "" });
    const { code, out } = await run("--help");
    expect(code).toBe(0);
    for (const word of ["serve", "check", "explain", "policy", "Exit codes:"]) expect(out).toContain(word);
  });

  it("has help with examples for every command", async () => {
    const walk = async (command: string): Promise<readonly string[]> => {
      const { code, out } = await run(`${command} --help`);
      expect(code, command).toBe(0);
      const [, list = ""] = /^Commands:\n((?: .*\n)+)/m.exec(out) ?? [];
      const words = [...list.matchAll(/^ {2}([a-z][\w-]*)/gm)]
        .map(([, word]) => word!)
        .filter((word) => word !== "help");
      const [, options = ""] = /^Options:\n((?: .*\n)+)/m.exec(out) ?? [];
      for (const [line, flag] of options.matchAll(/^ {2}(-\S+).*$/gm))
        expect(line, `${command} describes ${flag}`).toMatch(/\S {2,}\S/);
      if (words.length === 0) expect(out, command).toMatch(/^Exit codes: 0 .*\b2 wrong usage/ms);
      if (words.length === 0)
        expect(out, command).toMatch(new RegExp(`Examples?:\\n {2}(\\w+=\\S* )*sluice ${command}\\b`));
      const below = await Promise.all(words.map((word) => walk(`${command} ${word}`.trim())));
      return words.length === 0 ? [command] : below.flat();
    };
    const commands = await walk("");
    expect(commands).toEqual(
      expect.arrayContaining(["serve", "policy lint", "policy apply", "kill-switch on", "audit"]),
    );
    expect(commands.length).toBeGreaterThan(25);
    expect((await run("serve --help")).out).toMatch(/--port <number>.*\n?.*SLUICE_HTTP_PORT.*8080/);
  });

  it.each(["", "frobnicate", "check", "check user=u1 --bogus", "policy", "policy lint"])(
    "ends with 2 on wrong usage: %j",
    async (words) => {
      const { code, err } = await run(words);
      expect(code).toBe(2);
      expect(err).not.toBe("");
    },
  );
});

describe("wrong usage", () => {
  it.each([
    ["frobnicate", "sluice"],
    ["check", "sluice check"],
    ["policy get", "sluice policy get"],
    ["kill-switch on", "sluice kill-switch on"],
    ["token make", "sluice token make"],
    ["subject reset", "sluice subject reset"],
  ])("of %j names the help of that command", async (words, command) => {
    expect(await run(words)).toMatchObject({ code: 2, err: expect.stringContaining(`\n(see: ${command} --help)\n`) });
  });

  it.each([
    ["help nope", "error: unknown command 'nope'\n(see: sluice --help)\n"],
    ["help polcy", "error: unknown command 'polcy'\n(Did you mean policy?)\n(see: sluice --help)\n"],
    ["help policy aply", "error: unknown command 'aply'\n(Did you mean apply?)\n(see: sluice policy --help)\n"],
    ["policy help nope", "error: unknown command 'nope'\n(see: sluice policy --help)\n"],
  ])("of %j says what is wrong, and nothing else", async (words, err) => {
    expect(await run(words)).toEqual({ code: 2, out: "", err });
  });

  it("is none to ask for the help of a command below a command", async () => {
    expect(await run("help policy apply")).toEqual(await run("policy apply --help"));
    expect(await run("policy help apply")).toEqual(await run("policy apply --help"));
    expect(await run("help")).toEqual(await run("--help"));
  });
});

describe("sluice check", () => {
  it("decides in this process, for people", async () => {
    const { code, out } = await run("check ip=203.0.113.7 endpoint=/login --config $good");
    expect(code).toBe(0);
    expect(out).toMatch(/\nallowed {2}1 of 2 left; login \(ip\) allows 2 per 1h\n/);
  });

  it.each(["check", "explain"])("says in its first line that no server was asked: %s", async (command) => {
    const words = `${command} ip=203.0.113.7 endpoint=/login`;
    const fromFile = `Decided in this process, not by a server: the policies in ${good}, on counters that start empty.`;
    expect((await run(`${words} --config $good`)).out.split("\n")[0]).toBe(fromFile);
    expect((await run(`${words} --local`, { RATE_LIMIT_CONFIG: good })).out.split("\n")[0]).toBe(fromFile);
    const byDefault = (await run(`${words} --local`)).out.split("\n")[0];
    expect(byDefault).toMatch(/^Decided in this process, not by a server: the default policy, because no --config/);
    const json = await run(`${words} --json --config $good`);
    expect(JSON.parse(json.out)).toBeTypeOf("object");
    expect(json.err).toBe(`${fromFile}\n`);
  });

  it("asks the server of SLUICE_SERVER, and never decides in this process unless it is told to", async () => {
    const env = { SLUICE_SERVER: daemon.url, RATE_LIMIT_CONFIG: example, SLUICE_REDIS_URL: "redis://127.0.0.1:1" };
    const words = "check ip=203.0.113.40 endpoint=/login --cost 2";
    const first = await run(words, env);
    expect(first).toMatchObject({ code: 0, err: "" });
    expect(first.out).toMatch(/^allowed {2}0 of 2 left; login \(ip\) allows 2 per 1h\n/);
    expect(await run(words, env)).toMatchObject({ code: 1, out: expect.stringMatching(/^DENIED /) });
    const explained = await run("explain ip=203.0.113.40 endpoint=/login", env);
    expect(explained).toMatchObject({ code: 0, out: expect.stringMatching(/^DENIED/m) });
    expect(explained.out).not.toContain("this process, not by");
    // The command line is believed before the environment.
    expect(await run(`${words} --config $good`, { SLUICE_SERVER: daemon.url })).toMatchObject({ code: 0 });
    const nowhere = await run(words, { SLUICE_SERVER: "http://127.0.0.1:9", RATE_LIMIT_CONFIG: good });
    expect(nowhere).toMatchObject({ code: 2, out: "" });
    expect(nowhere.err).toMatch(/^no answer from http:\/\/127\.0\.0\.1:9 \(SLUICE_SERVER\): .*--config FILE\n$/);
    expect(await run(words, { SLUICE_SERVER: "nonsense" })).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^SLUICE_SERVER is "nonsense"; it should be a URL/),
    });
  });

  it.each([
    ["--redis redis://127.0.0.1:1", /^--redis says where this process finds counters.*--config FILE or --local/],
    ["--config $good --server http://127.0.0.1:1", /--config.*cannot be used with.*--server/],
    ["--local --server http://127.0.0.1:1", /--local.*cannot be used with.*--server/],
    ["--local --token-file $good", /--local.*cannot be used with.*--token-file/],
    ["--local --ca $good", /--local.*cannot be used with.*--ca/],
    ["--server http://127.0.0.1:1 --ca $good", /^--ca is for https:\/\//],
    ["--server https://127.0.0.1:1 --ca $good", /^--ca: .*good\.yaml holds no certificate/],
    ["--server https://127.0.0.1:1 --ca $nowhere", /^--ca: .*nowhere\.yaml does not exist/],
    ["--token-file $nowhere", /^--token-file: .*nowhere\.yaml does not exist/],
  ])("ignores no option: %s", async (words, expected) => {
    for (const command of ["check", "explain"]) {
      const { code, out, err } = await run(`${command} ip=203.0.113.7 ${words}`);
      expect({ code, out }, command).toEqual({ code: 2, out: "" });
      expect(err).toMatch(expected);
    }
  });

  it("ends with 1 when a check is denied", async () => {
    const { code, out } = await run(`check ip=203.0.113.7 endpoint=/login --repeat 3 --config $good`);
    expect(code).toBe(1);
    expect(out).toMatch(/^DENIED .*try again in/ms);
    expect(out).toMatch(/\n2 allowed, 1 denied\n$/);
  });

  it("prints JSON, one decision a line", async () => {
    const { code, out } = await run(`check ip=203.0.113.7 endpoint=/login --repeat 3 --json --config $good`);
    expect(code).toBe(1);
    const decisions = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { allowed: boolean });
    expect(decisions.map((one) => one.allowed)).toEqual([true, true, false]);
  });

  it("takes cost, preview, policy and details", async () => {
    const words = `check --policy login ip=203.0.113.7 --cost 2 --preview --details --json --config $good`;
    const { code, out } = await run(words);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ policy: "login", cost: 2, preview: true, limits: [{ scope: "ip" }] });
  });

  it("finds policies through RATE_LIMIT_CONFIG with --local", async () => {
    const words = "check ip=203.0.113.7 endpoint=/login --json --local";
    expect(JSON.parse((await run(words, { RATE_LIMIT_CONFIG: good })).out).policy).toBe("login");
    expect(JSON.parse((await run(words)).out)).toMatchObject({ policy: "default", remaining: 999 });
  });

  it("asks a server, whose counters last", async () => {
    const words = `check ip=203.0.113.9 endpoint=/login --json --server ${daemon.url}`;
    expect(JSON.parse((await run(words)).out)).toMatchObject({ allowed: true, remaining: 1 });
    expect(JSON.parse((await run(words)).out)).toMatchObject({ allowed: true, remaining: 0 });
    const { code, out } = await run(words);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ allowed: false, policy: "login" });
  });

  it("decides on counters in Redis, which last, and says where they are", async () => {
    const server = await startServer({ flavor: "valkey" });
    try {
      await server.command("CONFIG", "SET", "requirepass", "hunter2");
      const env = { REDIS_CLUSTER_PASSWORD: "hunter2", SLUICE_HOST: "0.0.0.0" };
      const words = `check ip=203.0.113.9 endpoint=/login --json --config $good`;
      const first = await run(`${words} --redis ${server.url}`, env);
      expect(JSON.parse(first.out)).toMatchObject({ allowed: true, remaining: 1 });
      expect(first.err).toMatch(new RegExp(`^Decided in this process, .*, on the counters at ${server.url}\\.\n$`));
      const second = await run(words, { SLUICE_REDIS_URL: `redis://:hunter2@127.0.0.1:${server.port}` });
      expect(JSON.parse(second.out)).toMatchObject({ allowed: true, remaining: 0 });
      expect(second.err).not.toContain("hunter2");
      const seen = await run(`${words} --preview --redis redis://:hunter2@127.0.0.1:${server.port}`);
      expect(seen.err).toMatch(/^--redis: holds a password/);
      expect(seen.err).not.toContain("hunter2");
      expect((await run(`${words} --redis ${server.url}`, env)).code).toBe(1);
      const explained = await run(`explain ip=203.0.113.9 endpoint=/login --config $good --redis ${server.url}`, env);
      expect(explained.code).toBe(0);
      expect(explained.out).toContain("DENIED");
      const wrong = await run(`${words} --redis ${server.url}`, { REDIS_CLUSTER_PASSWORD: "hunter3" });
      expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(/cannot be reached within 5 s \(WRONGPASS/) });
      expect(wrong.err).not.toContain("hunter3");
    } finally {
      await server.close();
    }
  });

  it("says what is wrong with the address of counters, without repeating it", async () => {
    expect(await run("check a=1 --local --redis redis://u:hunter2@")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^--redis: (?!.*hunter2)/),
    });
    expect(await run(`check a=1 --redis redis://a --server ${daemon.url}`)).toMatchObject({ code: 2 });
  });

  it("says what is wrong with what it was given", async () => {
    expect(await run("check user")).toMatchObject({ code: 2, err: expect.stringContaining("name=value") });
    expect(await run("check =u1")).toMatchObject({ code: 2, err: expect.stringContaining("name=value") });
    expect(await run("check a=1 a=2")).toMatchObject({ code: 2, err: expect.stringContaining("twice") });
    expect(await run("check a=1 --cost x")).toMatchObject({ code: 2, err: expect.stringContaining("--cost") });
    expect(await run("check a=1 --cost 0 --local")).toMatchObject({ code: 2, err: expect.stringContaining("cost") });
    expect(await run("check a=1 --repeat 0")).toMatchObject({ code: 2, err: expect.stringContaining("--repeat") });
    expect(await run("check a=1 --policy nowhere --local")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^--policy: no policy has the id "nowhere"\n/),
    });
    expect(await run("check a=1 --config nowhere.yaml")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^nowhere\.yaml does not exist\n/),
    });
    expect(await run(`check a=1 --config $bad`)).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${bad}:3:5`),
    });
  });

  it("says why a server does not answer, or what it refused", async () => {
    expect(await run("check a=1 --server nonsense")).toMatchObject({ code: 2, err: expect.stringContaining("URL") });
    expect(await run(`check a=1 --policy nowhere --server ${daemon.url}`)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/policy_not_found.*\n {2}--policy: .*nowhere/),
    });
    expect(await run(`status --server ${daemon.url}/elsewhere`)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/not_found.*Is this the HTTP port of a server.*and not its admin port\?$/m),
    });
    const other = createServer((_request, response) => response.end("<h1>hello</h1>"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    expect(await run(`check a=1 --server ${url}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("not as Sluice"),
    });
    await new Promise((resolve) => other.close(resolve));
    expect(await run(`check a=1 --server ${url}`)).toMatchObject({ code: 2, err: expect.stringContaining("refused") });
  });
});

describe("what others wrote", () => {
  const nasty = "x\u001b[2J\u009b31m\u202e";

  it.each([
    `explain ip=203.0.113.7 endpoint=/login user=${nasty} --config $good`,
    `explain user=${nasty} endpoint=/${nasty} --json --config $good`,
    `check ip=203.0.113.8 endpoint=/login user=${nasty} --json --config $good`,
    `check ${nasty}`,
    `check ip=203.0.113.8 --config ${nasty}`,
    `policy lint ${nasty}`,
    `${nasty}`,
    `check --${nasty}`,
    `status --server http://${nasty}`,
  ])("commands no terminal: %j", async (words) => {
    const { out, err } = await run(words);
    expect(out + err).not.toBe("");
    expect((out + err).replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  });
});

describe("sluice explain", () => {
  it("tells which policies match, which counters they lead to, and the arithmetic", async () => {
    const { code, out } = await run(`explain ip=203.0.113.7 endpoint=//login/ --config $good`);
    expect(code).toBe(0);
    for (const part of ["login", "203.0.113.7", "endpoint", "cost 1", "ALLOWED"]) expect(out).toContain(part);
    expect(out.endsWith("\n")).toBe(true);
  });

  it("asks a server as well, in prose and in JSON", async () => {
    const words = `explain ip=203.0.113.77 endpoint=/login --server ${daemon.url}`;
    const { code, out } = await run(words);
    expect(code).toBe(0);
    expect(out).toContain("203.0.113.77");
    expect(JSON.parse((await run(`${words} --json`)).out)).toMatchObject({
      decision: { policy: "login", preview: true },
    });
  });
});

describe("sluice policy lint", () => {
  it("finds nothing in the example that comes with Sluice", async () => {
    expect(await run(`policy lint --strict $example`)).toEqual({
      code: 0,
      out: "1 file: 0 errors, 0 warnings\n",
      err: "",
    });
  });

  it("tells every error with its place, and ends with 1", async () => {
    const { code, out } = await run(`policy lint $bad $good`);
    expect(code).toBe(1);
    expect(out).toContain(`${bad}:3:5: error: policies[0].limit: `);
    expect(out).toContain(`${bad}:4:`);
    expect(out).toMatch(/\n2 files: [2-9] errors, \d+ warnings?\n$/);
  });

  it("tells warnings, which fail only where asked", async () => {
    await writeFile(
      paths.$surprising!,
      "policies: [{ id: a, limits: [{ by: [user], algorithm: fixed_window, windows: [5/m] }] }]\n",
    );
    const { code, out } = await run(`policy lint $surprising`);
    expect(code).toBe(0);
    expect(out).toMatch(/^.*surprising\.yaml:1:\d+: warning: policies\[0\]/);
    expect((await run(`policy lint --strict $surprising`)).code).toBe(1);
  });

  it("prints JSON", async () => {
    const { code, out } = await run(`policy lint --json $bad`);
    expect(code).toBe(1);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ ok: false });
    expect(report.problems[0]).toMatchObject({
      severity: "error",
      file: bad,
      line: 3,
      column: 5,
      field: "policies[0].limit",
    });
  });

  it("ends with 2 where a file cannot be read", async () => {
    const { code, out } = await run(`policy lint $nowhere $good`);
    expect(code).toBe(2);
    expect(out).toMatch(/^error: .*nowhere\.yaml does not exist\n/);
  });
});

describe("sluice token", () => {
  it("makes an entry of a file by name and role, and says what is missing", async () => {
    expect(await run("token make --name gateway --role check --entry")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^sluice_[\w-]{43}\n$/),
      err: expect.stringContaining("role: check"),
    });
    expect(await run("token make --name gateway")).toMatchObject({ code: 2, err: expect.stringContaining("--role") });
    expect(await run("token make --name gateway --role king --entry")).toMatchObject({
      code: 2,
      err: expect.stringContaining("check, viewer, editor, operator, admin"),
    });
    expect(await run("token make --name gateway --role check --entry --why so")).toMatchObject({
      code: 2,
      err: expect.stringContaining("leave out --why"),
    });
  });
});

describe("sluice serve", () => {
  it("ends with 2 and names every bad setting", async () => {
    const { code, err } = await run("serve --port x --host 0.0.0.0", { SLUICE_LOG_LEVEL: "loud" });
    expect(code).toBe(2);
    for (const name of ["--port", "--host", "SLUICE_LOG_LEVEL"]) expect(err).toMatch(new RegExp(`^${name}: `, "m"));
  });

  it("ends with 2 where a setting turns out to be of no use", async () => {
    expect(await run("serve --port 0 --redis rediss://127.0.0.1:1 --redis-ca $nowhere")).toMatchObject({
      code: 2,
      err: `SLUICE_REDIS_CA (--redis-ca): ${paths.$nowhere} does not exist\n`,
    });
  });

  it("lists variables that have no option in its help", async () => {
    const { out } = await run("serve --help");
    for (const name of ["REDIS_CLUSTER_URL", "REDIS_CLUSTER_PASSWORD", "REDIS_MAX_CONN"])
      expect(out).toMatch(new RegExp(`^ {2}${name} {2,}\\S`, "m"));
  });

  it("knows the flag that was meant where one is named after a variable", async () => {
    for (const [wrong, flag] of [
      ["--http-port 80", "--port"],
      ["--redis-url redis://a", "--redis"],
      ["--store-url sqlite:a", "--store"],
      ["--http-port", "--port"],
    ])
      expect(await run(`serve ${wrong}`)).toMatchObject({
        code: 2,
        err: `there is no option ${wrong?.split(" ")[0]}; did you mean ${flag}? (see: sluice serve --help)\n`,
      });
    expect((await run("serve --help")).out).not.toContain("--http-port");
  });

  it("says that a switch takes no value, of any command", async () => {
    expect((await run("serve --envoy-headers=true")).err).toMatch(/^error: option '--envoy-headers' takes no value/);
    expect((await run("policy list --json=true")).err).toMatch(/^error: option '--json' takes no value/);
    expect((await run("policy list --jsn=true")).err).toMatch(/^error: unknown option '--jsn=true'/);
  });

  it("names what named the policies that cannot be used", async () => {
    const missing = `${paths.$nowhere} does not exist\n1 problem in the policies of `;
    expect((await run("serve --port 0 --config $nowhere")).err).toContain(`${missing}--config;`);
    const env = { RATE_LIMIT_CONFIG: paths.$nowhere ?? "" };
    expect((await run("serve --port 0", env)).err).toContain(`${missing}RATE_LIMIT_CONFIG;`);
    expect((await run("check user=u1 --local", env)).err).toContain(`${missing}RATE_LIMIT_CONFIG;`);
    expect((await run("explain user=u1 --config $nowhere")).err).toContain(`${missing}--config;`);
  });

  it("tells what is wrong with a file of tokens by its place, not as if it had been typed", async () => {
    const { code, err } = await run("serve --port 0 --tokens $good");
    expect(code).toBe(2);
    expect(err).toContain(`${good}:2:3 policies: is not a known key; known here: tokens\n`);
    expect(err).not.toContain("--policy");
  });

  it("warns of options that have no effect, by their names", async () => {
    const signals = new EventEmitter();
    let err = "";
    const stderr = { write: (text: string) => (err += text) };
    const stdout = { write: () => setImmediate(() => signals.emit("SIGTERM", "SIGTERM")) };
    await run("serve --port 0 --push redis", { SLUICE_PORT: "9" }, { terminal: { stdout, stderr }, signals });
    expect(err).toMatch(/^ {2}--push: is of no use, because there is no policy store/m);
    expect(err).toMatch(/^ {2}SLUICE_PORT: is not read; the variable of --port is SLUICE_HTTP_PORT$/m);
  });

  it("ends with 2 on bad policies, every problem with its place", async () => {
    const { code, err } = await run(`serve --port 0 --config $bad`);
    expect(code).toBe(2);
    expect(err).toContain(`${bad}:3:5 policies[0].limit`);
    expect(err).toContain(`${bad}:4:`);
  });

  it("stops when its terminal is gone, and only then does SIGHUP stop it", async () => {
    for (const hangUp of ["stop", "reload"] as const) {
      const signals = new EventEmitter();
      const ended = run("serve --port 0 --config $good", {}, { signals, hangUp });
      await expect.poll(() => signals.listenerCount("SIGHUP"), { timeout: 30_000, interval: 5 }).toBe(1);
      signals.emit("SIGHUP");
      if (hangUp === "reload") signals.emit("SIGTERM");
      const { code, err } = await ended;
      expect(code).toBe(0);
      expect(err).toContain(`stopped signal=${hangUp === "stop" ? "SIGHUP" : "SIGTERM"}`);
    }
  });

  it("promises a denial only if a person who types will meet it", async () => {
    const greeting = async (windows: string): Promise<string> => {
      await writeFile(paths.$surprising!, `policies: [{ id: p, limits: [{ by: [user], windows: [${windows}] }] }]\n`);
      const signals = new EventEmitter();
      const ended = run("serve --port 0 --config $surprising", {}, { signals });
      await expect.poll(() => signals.listenerCount("SIGTERM"), { timeout: 30_000, interval: 5 }).toBe(1);
      signals.emit("SIGTERM");
      return (await ended).out;
    };
    expect(await greeting("3/m")).toContain("After 3 times it is denied");
    expect(await greeting("10/s")).not.toContain("it is denied");
    expect(await greeting("10/s burst 10, 4/h")).toContain("After 4 times it is denied");
    expect(await greeting("500/h")).not.toContain("it is denied");
  });

  it("ends with 2 and says what to do when the port is taken", async () => {
    const { code, err } = await run(`serve --port ${new URL(daemon.url).port} --config $good`);
    expect(code).toBe(2);
    expect(err).toMatch(/cannot listen on port \d+ of 127\.0\.0\.1: .*already.*--port/);
  });
});
