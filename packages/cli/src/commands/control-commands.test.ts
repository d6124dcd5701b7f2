import { EventEmitter } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { request as askOnward, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { openPolicyStore } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runProgram } from "../program.ts";

let folder: string;
let daemon: Daemon;
let url: string;
let token: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice control "));
  await start();
});

async function start(more: Readonly<Record<string, string>> = {}): Promise<void> {
  const store = `sqlite:${join(folder, "store.db")}`;
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", adminPort: "0", store, ...more });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  url = daemon.addresses.admin[0]!;
  token = daemon.firstToken?.token ?? token;
}

afterEach(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface RunOptions {
  readonly env?: Record<string, string>;
  /** What is piped in. */
  readonly input?: string;
  /** What a person types when asked; it may do something first. Undefined: the input ends. */
  readonly answer?: (question: string) => string | undefined | Promise<string>;
}

/** Runs a command line as the first admin, unless `env` says otherwise. */
async function run(words: readonly string[], { env, input, answer }: RunOptions = {}): Promise<Outcome> {
  let out = "";
  let err = "";
  const stdin = Object.assign(new PassThrough(), { isTTY: answer !== undefined });
  if (input !== undefined) stdin.end(input);
  const tell = (text: string): void => {
    err += text;
    if (answer !== undefined && /(\[y\/N\]|to go on:) $/.test(text))
      void Promise.resolve(answer(text)).then((typed) =>
        typed === undefined ? stdin.end() : stdin.write(`${typed}\n`),
      );
  };
  const code = await runProgram({
    args: words,
    env: { SLUICE_ADMIN_URL: url, SLUICE_TOKEN: token, ...env },
    terminal: { stdout: { write: (text: string) => (out += text) }, stderr: { write: tell }, stdin },
    signals: new EventEmitter(),
  });
  return { code, out, err };
}

/** Runs one that must succeed, and reads its JSON. */
async function json<T>(...words: readonly string[]): Promise<T> {
  const { code, out, err } = await run([...words, "--json"]);
  expect(code, err).toBe(0);
  return JSON.parse(out) as T;
}

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const login = (limit: string): string =>
  `policies:\n  - id: login\n    match: { endpoint: /login }\n    limits: [{ by: [ip], windows: [${limit}] }]\n    on_failure: closed\n`;
const search =
  "  - id: search\n    match: { endpoint: /search }\n    limits: [{ by: [user], windows: [30/m] }]\n    on_failure: open\n";

async function apply(text: string, ...words: readonly string[]): Promise<Outcome> {
  return run(["policy", "apply", await file("policies.yaml", text), "--yes", ...words]);
}

async function deny(dimensions: Readonly<Record<string, string>>, times: number): Promise<boolean> {
  let allowed = true;
  for (let i = 0; i < times; i++) allowed = (await daemon.limiter.check({ dimensions })).allowed;
  return !allowed;
}

describe("sluice policy apply", () => {
  it("shows a plan, does it, and finds nothing to do the next time", async () => {
    const first = await apply(login("2/h") + search, "--why", "first", "--wait");
    expect(first.code, first.err).toBe(0);
    expect(first.out).toMatch(/^\+ {2}login {3}create {2}new/m);
    expect(first.out).toContain("2 to create, 0 to change, 0 to delete, 0 unchanged");
    expect(first.err).toMatch(/nodes \[#{20}\] 1 of 1 at generation/);
    expect(await deny({ endpoint: "/login", ip: "203.0.113.7" }, 3)).toBe(true);
    expect(await apply(login("2/h") + search)).toMatchObject({ code: 0, out: "Nothing to change: 2 unchanged.\n" });
    const { policies } = await json<{ policies: { id: string; version: number; why: string }[] }>("policy", "list");
    expect(policies).toMatchObject([
      { id: "login", version: 1, why: "first" },
      { id: "search", version: 1, why: "first" },
    ]);
    expect((await run(["policy", "list"])).out).toMatch(/^login +1 +- +in force +.* +admin +first$/m);
  });

  it("makes several changes together, in one generation", async () => {
    const { out } = await run(["policy", "apply", await file("p.yaml", login("2/h") + search), "--yes", "--json"]);
    const { generation } = JSON.parse(out) as { generation: number };
    const { records } = await json<{ records: unknown[] }>("audit", "--action", "policy.put");
    expect(records).toMatchObject([{ generation }, { generation }]);
  });

  it("does nothing in a dry run, nor if the answer is no, nor if there is no terminal to ask at", async () => {
    const path = await file("policies.yaml", login("2/h"));
    const dry = await run(["policy", "apply", path, "--dry-run"]);
    expect(dry).toMatchObject({ code: 0, out: expect.stringContaining("Dry run: nothing was changed.") });
    const gone = await run(["policy", "apply", path], { answer: () => undefined });
    expect(gone).toMatchObject({ code: 1, err: expect.stringMatching(/\[y\/N\] \nNothing was done\.\n$/) });
    const no = await run(["policy", "apply", path], { answer: () => "n" });
    expect(no).toMatchObject({ code: 1, err: expect.stringContaining("Nothing was done.") });
    const nobody = await run(["policy", "apply", path]);
    expect(nobody).toMatchObject({ code: 2, err: expect.stringContaining("Add --yes") });
    const input = await run(["policy", "apply", "-"], { input: login("2/h") });
    expect(input).toMatchObject({ code: 2, err: expect.stringContaining("add --yes") });
    expect(await json("policy", "list")).toEqual({ policies: [] });
    const yes = await run(["policy", "apply", path], { answer: () => "y" });
    expect(yes).toMatchObject({ code: 0, out: expect.stringContaining("Applied, as generation") });
  });

  it("overwrites nothing that changed between the plan and the answer, and says what to look at", async () => {
    await apply(login("2/h"));
    const path = await file("mine.yaml", login("5/h"));
    const outcome = await run(["policy", "apply", path], {
      answer: async () => {
        expect((await apply(login("9/h"))).code).toBe(0);
        return "y";
      },
    });
    expect(outcome.code).toBe(4);
    expect(outcome.err).toMatch(
      /policy login is at version 2 by now; it was at version 1 .*sluice policy diff login --from 1 --to 2/,
    );
    expect((await run(["policy", "get", "login"])).out).toContain("9/h");
  });

  it("overwrites nothing of several either", async () => {
    const path = await file("mine.yaml", login("5/h") + search);
    const outcome = await run(["policy", "apply", path], {
      answer: async () => {
        expect((await apply(login("9/h"))).code).toBe(0);
        return "y";
      },
    });
    expect(outcome).toMatchObject({ code: 4, err: expect.stringContaining("nothing was overwritten") });
    const { policies } = await json<{ policies: unknown[] }>("policy", "list");
    expect(policies).toHaveLength(1);
  });

  it("overwrites nothing of a subject that changed between the plan and the answer", async () => {
    const text = (tier: string): string => `policies: []\nsubjects:\n  - { user: u1, tier: ${tier} }\n`;
    await apply(text("gold"));
    const outcome = await run(["policy", "apply", await file("mine.yaml", text("silver"))], {
      answer: async () => {
        expect((await apply(text("free"))).code).toBe(0);
        return "y";
      },
    });
    expect(outcome).toMatchObject({ code: 4, err: expect.stringContaining("nothing was overwritten") });
    expect(await json("tier", "get", "user=u1")).toMatchObject({ tier: "free" });
  });

  it("keeps what the file does not name, unless it is to replace everything", async () => {
    await apply(`${login("2/h")}${search}default: none\nsubjects:\n  - { user: u1, tier: gold }\n`);
    expect((await apply(login("3/h"))).code).toBe(0);
    const dry = await apply(login("3/h"), "--replace", "--dry-run");
    expect(dry.out).toMatch(/^- {2}default {2}delete {2}1 → gone/m);
    expect(dry.out).toMatch(/^- {2}search/m);
    expect(dry.out).toContain("-  user=u1\n0 subjects in the file: 0 to create, 0 to change, 1 to delete\n");
    expect((await apply(login("3/h"), "--replace")).code).toBe(0);
    const { policies } = await json<{ policies: { id: string }[] }>("policy", "list");
    expect(policies.map(({ id }) => id)).toEqual(["login"]);
    expect(await json("tier", "get", "user=u1")).toMatchObject({ tier: null });
    expect((await apply(login("3/h"), "--replace")).out).toMatch(/Nothing to change\.\n$/);
  });

  it("takes subjects and refers to what is in the store, and places what is wrong in the file", async () => {
    await apply(login("2/h"));
    const subjects = "subjects:\n  - ip: 203.0.113.9\n    limits: [{ policy: login, windows: [7/h] }]\n";
    expect(await apply(subjects)).toMatchObject({
      code: 0,
      out: expect.stringContaining("+  ip=203.0.113.9\n1 subject in the file: 1 to create, 0 to change, 0 to delete\n"),
    });
    const other = await apply(subjects.replace("7/h", "8/h"), "--json");
    expect(JSON.parse(other.out)).toMatchObject({
      applied: true,
      subjects: { created: { count: 0 }, changed: { count: 1, first: [{ dimension: "ip", value: "203.0.113.9" }] } },
    });
    expect((await apply(subjects)).out).toContain("~  ip=203.0.113.9\n");
    expect(await apply(subjects)).toMatchObject({ code: 0, out: expect.stringContaining("Nothing to change.") });
    const unknown = await apply(subjects.replace("login", "logon"));
    expect(unknown).toMatchObject({ code: 1, err: expect.stringMatching(/policies\.yaml:3:\d+ subjects\[0\].*logon/) });
    const bad = await apply(login("2/x"));
    expect(bad).toMatchObject({
      code: 1,
      err: expect.stringMatching(/policies\.yaml:4:\d+ .*1 problem; nothing was changed/s),
    });
    expect(await run(["policy", "apply", join(folder, "nowhere.yaml")])).toMatchObject({ code: 2 });
    expect(await apply("policies: [")).toMatchObject({ code: 1 });
  });

  it("translates other formats, and leaves Envoy's to files", async () => {
    const text = `{ "domains": [
      { "domain": "shop", "prefix": "user", "rate": { "capacity": 100, "leak_rate_per_second": 10 } }
    ] }`;
    expect(await apply(text)).toMatchObject({ code: 0, out: expect.stringMatching(/^\+ {2}shop\/user/m) });
    expect(await apply(text)).toMatchObject({ code: 0, out: "Nothing to change: 1 unchanged.\n" });
    const { out } = await run(["policy", "get", "shop/user"]);
    expect(parse(out)).toMatchObject({ policies: [{ id: "shop/user", limits: [{ algorithm: "leaky_bucket" }] }] });
    const envoy = "domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: second, requests_per_unit: 1 }\n";
    expect(await apply(envoy)).toMatchObject({ code: 2, err: expect.stringContaining("--config") });
  });

  it("tells where a policy file wins", async () => {
    await daemon.close();
    await start({ config: await file("served.yaml", login("2/h") + search) });
    const warning = "warning: policy login is in a policy file of the server as well, which wins";
    expect((await apply(login("3/h"))).err).toContain(warning);
    expect((await run(["policy", "list"])).out).toMatch(/^login +1 +- +a file wins/m);
    expect((await run(["policy", "get", "login"])).out).toContain("# Not in force");
    const both = await apply(login("4/h") + search);
    expect(both).toMatchObject({ code: 0, err: expect.stringContaining(warning) });
    expect(both.err).toContain("warning: policy search is");
    expect((await run(["policy", "revert", "login", "--to", "1", "--yes"])).err).toContain(warning);
    expect((await run(["policy", "delete", "login", "--yes"])).err).toContain(warning);
    expect(await deny({ endpoint: "/login", ip: "203.0.113.7" }, 3)).toBe(true);
  });

  it("reads the input, and prints one JSON document", async () => {
    const { code, out } = await run(["policy", "apply", "-", "--yes", "--json"], { input: login("2/h") });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      applied: true,
      dry_run: false,
      generation: expect.any(Number),
      plan: [{ policy: "login", action: "create", version: 0, diff: expect.arrayContaining(["+id: login"]) }],
    });
  });

  it("lets an editor change what is of their team, one by one, and nothing else", async () => {
    await apply(`${login("2/h")}    owner: identity\n${search}    owner: search\n`);
    const made = await run(["token", "make", "--name", "ed", "--role", "editor", "--team", "identity"]);
    const env = { SLUICE_TOKEN: made.out.trim() };
    const two = login("3/h") + search.replaceAll("search", "signup");
    const path = await file("two.yaml", two);
    expect(await run(["policy", "apply", path, "--yes"], { env })).toMatchObject({ code: 0 });
    expect(await run(["policy", "apply", path, "--yes"], { env })).toMatchObject({
      code: 0,
      out: "Nothing to change: 2 unchanged.\n",
    });
    const refused = await run(["policy", "delete", "search", "--yes"], { env });
    expect(refused).toMatchObject({ code: 3, err: expect.stringMatching(/^not allowed: .*search/) });
    const { policies } = await json<{ policies: unknown[] }>("policy", "list", "--owner", "identity");
    expect(policies).toMatchObject([
      { id: "login", version: 2, author: "ed" },
      { id: "signup", version: 1, author: "ed" },
    ]);
  });
});

describe("sluice policy", () => {
  it("compares a file with the store, and versions with each other", async () => {
    await apply(login("2/h"));
    const path = await file("other.yaml", login("3/h"));
    expect(await run(["policy", "diff", path])).toMatchObject({
      code: 1,
      out: expect.stringContaining("-       - 2/h"),
    });
    await apply(login("3/h"));
    expect((await run(["policy", "diff", path])).code).toBe(0);
    expect(await run(["policy", "diff", "login"])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^login, version 1 → 2\n[\s\S]* {2}- .*2\/h\n {2}\+ .*3\/h\n/),
    });
    expect((await run(["policy", "diff", "login", "--from", "2", "--to", "2"])).code).toBe(0);
    expect(JSON.parse((await run(["policy", "diff", path, "--replace", "--json"])).out)).toMatchObject({
      same: true,
      plan: expect.arrayContaining([expect.objectContaining({ policy: "login", action: "unchanged", diff: [] })]),
    });
    expect((await run(["policy", "diff", "nothing"])).code).toBe(1);
  });

  it("prints a policy so that it can be applied, and all of them so that they can be kept", async () => {
    await apply(
      `${login("2/h")}${search}default: { limits: [{ by: [subject], windows: [10/s] }], on_failure: open }\n`,
    );
    const got = await run(["policy", "get", "login"]);
    expect(got.out).toMatch(/^# login, version 1, by admin at /);
    expect(await run(["policy", "diff", await file("got.yaml", got.out)])).toMatchObject({ code: 0 });
    const fallback = await run(["policy", "get", "default"]);
    expect(await run(["policy", "diff", await file("default.yaml", fallback.out)])).toMatchObject({ code: 0 });
    const exported = await run(["policy", "export"]);
    expect(await run(["policy", "diff", await file("all.yaml", exported.out), "--replace"])).toMatchObject({ code: 0 });
    expect(await json("policy", "export")).toEqual(parse(exported.out));
    expect(parse(exported.out)).toMatchObject({ policies: [{ id: "login" }, { id: "search" }] });
    const asJson = await run(["policy", "get", "login", "-o", "json"]);
    expect(JSON.parse(asJson.out)).toMatchObject({ policies: [{ id: "login" }] });
    expect(await json("policy", "get", "login", "--version", "1")).toMatchObject({ policy: "login", version: 1 });
  });

  it("prints how a policy is counted, tells where that changes, and warns where it has no effect", async () => {
    const policy = (more: string): string =>
      `policies:\n  - { id: api, limits: [{ by: [user], windows: [9k/s] }], on_failure: open, ${more} }\n`;
    expect((await apply(policy("counters: leased, max_overshoot: 5%"))).err).toBe("");
    const { out } = await run(["policy", "get", "api"]);
    expect(parse(out)).toMatchObject({ policies: [{ counters: "leased", max_overshoot: "5%" }] });
    const path = await file("next.yaml", policy("counters: exact, max_overshoot: 2%"));
    expect(await run(["policy", "diff", path])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/- .*leased[\s\S]*- .*5%[\s\S]*\+ .*exact[\s\S]*\+ .*2%/),
    });
    expect((await run(["policy", "apply", path, "--yes"])).err).toContain(
      "max_overshoot: is 2%, and has no effect: counters is exact, and exceeds nothing",
    );
    expect(await apply(policy("counters: leased, max_overshoot: 0"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("policies[0].max_overshoot: is 0, so that nothing may be leased"),
    });
  });

  it("reverts, deletes and brings back", async () => {
    await apply(login("2/h"));
    await apply(login("3/h"));
    expect(await run(["policy", "revert", "login", "--to", "1", "--yes", "--why", "too lax"])).toMatchObject({
      code: 0,
      out: expect.stringContaining("login is at version 3."),
    });
    const removed = await run(["policy", "delete", "login", "--wait"], { answer: () => "yes" });
    expect(removed).toMatchObject({ code: 0, out: expect.stringContaining("sluice policy revert login --to 3") });
    expect((await run(["policy", "get", "login"])).code).toBe(1);
    expect((await run(["policy", "get", "login", "--version", "4"])).err).toContain("deleted");
    expect((await run(["policy", "revert", "login", "--to", "2", "--yes"])).code).toBe(0);
    const { versions } = await json<{ versions: { version: number }[] }>("policy", "history", "login");
    expect(versions).toMatchObject([
      { version: 5, revert_of: 2, current: true },
      { version: 4 },
      { version: 3, revert_of: 1, why: "too lax" },
      { version: 2 },
      { version: 1 },
    ]);
    expect((await run(["policy", "history", "login", "--limit", "2"])).out.trimEnd().split("\n")).toHaveLength(3);
    const late = await run(["policy", "delete", "login"], {
      answer: async () => {
        expect((await apply(login("9/h"))).code).toBe(0);
        return "y";
      },
    });
    expect(late).toMatchObject({ code: 4, err: expect.stringContaining("policy login is at version 6 by now") });
  });
});

describe("sluice policy revert", () => {
  it("says that nothing was changed where the policy says the same already, and ends with 1", async () => {
    await apply(login("2/h"));
    await apply(login("3/h"));
    expect(await run(["policy", "revert", "login", "--to", "2", "--yes"])).toEqual({
      code: 1,
      out: "login is at version 2 already: nothing was changed.\n",
      err: "",
    });
    await apply(login("2/h"));
    expect((await run(["policy", "revert", "login", "--to", "1", "--yes"])).out).toBe(
      "login is at version 3, which says the same as version 1: nothing was changed.\n",
    );
  });

  it("says that a rollout goes on, which it does not end", async () => {
    await apply(login("2/h"));
    await apply(login("3/h"), "--rollout", "50%,100%", "--by", "ip", "--observe", "0s");
    expect(await run(["policy", "revert", "login", "--to", "1", "--yes"])).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /nothing was changed\. Its rollout to version 2 goes on; to end that: sluice policy rollout login --roll-back\n$/,
      ),
    });
    await run(["policy", "rollout", "login", "--finish", "--yes"]);
    await apply(login("4/h"), "--rollout", "50%,100%", "--by", "ip", "--observe", "0s");
    expect(await run(["policy", "revert", "login", "--to", "1", "--yes"])).toMatchObject({
      code: 4,
      err: expect.stringMatching(
        /finish it or roll it back first: sluice policy rollout login --finish, or --roll-back$/m,
      ),
    });
  });
});

describe("sluice policy rollout", () => {
  const rollout = ["--rollout", "50%,100%", "--by", "ip", "--observe", "0s"];

  it("shows its steps in a dry run, and in the history that it was rolled back", async () => {
    await apply(login("2/h"));
    const steps = ["--rollout", "5%:10m,100%", "--by", "ip"];
    const planned = "Rollout of login, 1 → 2, by ip: observe 10m, 5 % for 10m, 100 % for 10m\n";
    expect(await apply(login("3/h"), ...steps, "--dry-run")).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${planned}Dry run: nothing was changed.`),
    });
    const dry = await apply(login("3/h"), ...steps, "--dry-run", "--json");
    expect(JSON.parse(dry.out)).toMatchObject({
      rollouts: [],
      planned_rollouts: [
        { policy: "login", observe_for_ms: 600_000, steps: [{ percent: 5, hold_ms: 600_000 }, { percent: 100 }] },
      ],
    });
    expect(await json("policy", "rollout", "--all")).toEqual({ rollouts: [] });

    expect(await apply(login("3/h"), ...steps)).toMatchObject({ code: 0, out: expect.stringContaining(planned) });
    expect((await run(["policy", "history", "login"])).out).toMatch(/^ +2 .* written, being rolled out/m);
    const shown = (await run(["policy", "rollout", "login"])).out;
    expect(shown).toMatch(/^next +in \S+.*; so far 0 of 20 requests in 0 of 5 minutes from those who join first$/m);
    await run(["policy", "rollout", "login", "--advance", "--yes"]);
    await run(["policy", "rollout", "login", "--roll-back", "--why", "complaints", "--yes"]);
    const { out } = await run(["policy", "history", "login"]);
    expect(out).toMatch(/^ +2 .* written, rolled back/m);
    expect(out).toMatch(/^\* +1 .* written$/m);
    expect(await json("policy", "history", "login")).toMatchObject({
      versions: [
        { version: 2, current: false, rollout: { state: "rolled_back" } },
        { version: 1, current: true },
      ],
    });
    expect(await run(["policy", "revert", "login", "--to", "2", ...steps, "--dry-run"])).toMatchObject({
      out: expect.stringContaining("Rollout of login, 1 → 3, by ip: observe 10m"),
    });
  });

  it("begins by apply, is listed, shown and steered, and ends", async () => {
    await apply(login("2/h"));
    const begun = await apply(login("3/h"), ...rollout, "--why", "looser");
    expect(begun, begun.err).toMatchObject({ code: 0, out: expect.stringMatching(/Rollout \S+ begins/) });
    const { rollouts } = await json<{ rollouts: { id: string; policy: string }[] }>("policy", "rollout");
    expect(rollouts).toMatchObject([{ policy: "login", from_version: 1, to_version: 2 }]);
    expect((await run(["policy", "rollout", rollouts[0]!.id])).out).toMatch(/^policy +login, 1 → 2, by ip$/m);
    const second = await apply(login("4/h"));
    expect(second).toMatchObject({ code: 4, err: expect.stringContaining("sluice policy rollout login --finish") });
    expect(await run(["policy", "rollout", "login", "--wait", "--timeout", "1ms"])).toMatchObject({ code: 6 });
    expect((await run(["policy", "rollout", "login", "--pause"])).out).toMatch(/^state +paused/m);
    expect(await json("policy", "rollout", "login", "--resume", "--dry-run", "--wait")).toMatchObject({
      dry_run: true,
    });
    expect(await json("policy", "rollout", "login", "--resume")).toMatchObject({
      dry_run: false,
      generation: expect.any(Number),
      rollout: { policy: "login" },
    });
    expect((await run(["policy", "rollout", "login", "--finish"], { answer: () => "no" })).code).toBe(1);
    expect((await run(["policy", "rollout", "login", "--finish", "--yes", "--wait"])).out).toMatch(/^state +done/m);
    expect(await run(["policy", "rollout", "login", "--wait"])).toMatchObject({ code: 0 });
    expect(await json("policy", "rollout")).toEqual({ rollouts: [] });
    expect(await json("policy", "rollout", "--all")).toMatchObject({ rollouts: [{ state: "done" }] });
  });

  it("is waited for until it has ended, and the exit code tells how", async () => {
    await apply(login("2/h"));
    const waiting = apply(login("3/h"), ...rollout, "--wait", "--json");
    await expect.poll(async () => (await run(["policy", "rollout", "login"])).code, { timeout: 30_000 }).toBe(0);
    const back = await run(["policy", "rollout", "login", "--roll-back", "--yes", "--why", "no"]);
    expect(back.code, back.err).toBe(0);
    const { code, err } = await waiting;
    expect(err).toContain("version 1 of login is in force again");
    expect(code).toBe(1);
    expect((await run(["policy", "get", "login"])).out).toContain("2/h");
  });

  it("is left as it is by what it is in no state for, with exit code 1", async () => {
    expect(await run(["policy", "rollout"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^No rollout is underway/),
    });
    await apply(login("2/h"));
    await apply(login("3/h"), ...rollout);
    const steer = (verb: string) => run(["policy", "rollout", "login", verb, "--yes"]);
    expect(await steer("--resume")).toMatchObject({
      code: 1,
      err: "the rollout of login is not paused (running); nothing was changed\n",
    });
    expect((await steer("--pause")).code).toBe(0);
    expect(await steer("--pause")).toMatchObject({ code: 1, err: expect.stringContaining("is paused already") });
    expect((await steer("--roll-back")).code).toBe(0);
    for (const verb of ["--advance", "--pause", "--resume", "--finish", "--roll-back"])
      expect(await steer(verb), verb).toMatchObject({
        code: 1,
        err: "the rollout of login has ended (rolled back); nothing was changed\n",
      });
    // The number of a version that was rolled back is not given again, so a plan names none.
    const { out } = await apply(login("4/h"), "--rollout", "--dry-run");
    expect(out).toMatch(/^~ {2}login {3}change {2}1 → new/m);
    expect(out).toContain("Rollout of login, 1 → 3");
  });

  it("decides about no subject in a shadow, and says so to its end", async () => {
    await apply(login("2/h"));
    await apply(login("3/h"), ...rollout, "--shadow");
    const advance = () => run(["policy", "rollout", "login", "--advance", "--yes"]);
    expect((await advance()).out).toMatch(/^subjects +100 % compared with version 2; version 1 decides$/m);
    expect((await advance()).out).toMatch(/^state +done/m);
    const waited = await run(["policy", "rollout", "login", "--wait", "--timeout", "1m"]);
    expect(waited).toMatchObject({
      code: 0,
      err: expect.stringContaining("Version 2 of login was compared, and is not in force: this was a shadow rollout"),
      out: expect.stringMatching(/^subjects +100 % compared with version 2; version 1 decides$/m),
    });
    expect((await run(["policy", "history", "login"])).out).toMatch(/^ +2 .* written, compared \(shadow\)/m);
  });

  it("refuses options of a change where none is asked for", async () => {
    for (const more of [["--yes"], ["--dry-run"], ["--why", "x"]]) {
      const { code, err } = await run(["policy", "rollout", ...more]);
      expect([code, err]).toEqual([2, expect.stringMatching(new RegExp(`^${more[0]} goes with a change`))]);
      expect((await run(["policy", "rollout", "login", ...more])).code).toBe(2);
    }
  });

  it("is warned of where it is by a dimension that no limit counts by", async () => {
    await apply(login("2/h"));
    const warned = /^warning: --by: is nope, which no limit of the policy counts by; requests without it all get/m;
    expect((await apply(login("3/h"), "--rollout", "--by", "nope", "--dry-run")).err).toMatch(warned);
    expect((await apply(login("3/h"), "--rollout", "--by", "ip", "--dry-run")).err).toBe("");
  });

  it("takes a path that stands behind --rollout for steps, and says so", async () => {
    const { code, err } = await run(["policy", "apply", "--rollout", "p.yaml"]);
    expect([code, err]).toEqual([2, expect.stringMatching(/^--rollout is "p\.yaml".*A path goes before --rollout/)]);
  });

  it("says what is wrong with what it was given", async () => {
    expect((await run(["policy", "rollout", "--advance"])).code).toBe(2);
    expect((await run(["policy", "rollout", "x", "--advance", "--pause"])).code).toBe(2);
    expect((await run(["policy", "rollout", "x"])).code).toBe(1);
    expect((await run(["policy", "rollout", "x", "--all"])).code).toBe(2);
    expect((await apply(login("3/h"), "--shadow")).code).toBe(2);
    expect((await apply("subjects: [{ user: u1, tier: a }]\n", "--rollout")).code).toBe(2);
  });
});

describe("subjects", () => {
  it("have overrides that end, limits for good, tiers, and where each number comes from", async () => {
    await apply(`${login("2/h")}  - id: api\n    match: { endpoint: /api }\n    on_failure: open\n    limits:
      - by: [user]\n        windows: [5/s]\n        tiers: { gold: { windows: [50/s] } }\n`);
    const set = ["override", "set", "user=u1", "api", "100/s burst 200", "--reason", "load test"];
    expect(await run(set)).toMatchObject({ code: 2, err: expect.stringContaining("--for 2h") });
    expect(await run([...set, "--for", "2h", "--wait"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/in 2h/),
    });
    expect((await run(["tier", "set", "user=u2", "gold"])).code).toBe(0);
    expect((await run(["override", "set", "user=u3", "api", "7/s", "--for-good", "--reason", "r"])).code).toBe(0);
    const from = async (user: string): Promise<string> => (await run(["subject", `user=${user}`])).out;
    expect(await from("u1")).toMatch(/100\/s burst 200 +an override that ends in/);
    expect(await from("u2")).toMatch(/50\/s +tier gold/);
    expect(await from("u3")).toMatch(/7\/s +its own/);
    expect(await from("u4")).toMatch(/5\/s +the policy/);
    expect((await run(["override", "list", "--by", "user"])).out).toMatch(
      /^user=u1 .*load test$[\s\S]*^user=u3 .*for good/m,
    );
    expect((await run(["override", "list"])).code).toBe(2);
    for (const user of ["u1", "u3"])
      expect((await run(["override", "delete", `user=${user}`, "api"], { answer: () => "y" })).code).toBe(0);
    expect((await run(["override", "delete", "user=u1", "api", "--yes"])).code).toBe(1);
    expect(await json("override", "list", "user=u1")).toEqual({ subjects: [] });
    expect((await run(["tier", "get", "user=u2"])).out).toBe("gold\n");
    expect((await run(["tier", "clear", "user=u2", "--dry-run"])).out).toContain("Dry run");
    expect((await run(["tier", "clear", "user=u2", "--yes"])).code).toBe(0);
    expect((await run(["tier", "get", "user=u2"])).out).toBe("none\n");
    expect((await run(["override", "set", "user=u1", "nope", "1/s", "--for", "1h", "--reason", "r"])).code).toBe(1);
    expect((await run(["override", "set", "user=u1", "api", "fast", "--for", "1h", "--reason", "r"])).code).toBe(2);
  });

  it("have no tier to clear where they have none, which changes nothing and is exit code 1", async () => {
    for (const more of [[], ["--yes"], ["--dry-run"]])
      expect(await run(["tier", "clear", "user=u9", ...more])).toMatchObject({
        code: 1,
        out: "user=u9 has no tier; nothing was changed.\n",
      });
    const { code, out } = await run(["tier", "clear", "user=u9", "--json"]);
    expect([code, JSON.parse(out)]).toEqual([1, expect.objectContaining({ dry_run: false })]);
  });

  it("have one end of an override, one way of being listed, and a window said once", async () => {
    await apply(login("2/h") + search);
    const set = ["override", "set", "user=u1", "search"];
    const both = await run([...set, "7/s", "--for", "1h", "--for-good", "--reason", "r"]);
    expect(both).toMatchObject({
      code: 2,
      err: "--for, --until and --for-good exclude each other; give one of them\n",
    });
    const list = await run(["override", "list", "user=u1", "--by", "user"]);
    expect(list).toMatchObject({ code: 2, err: expect.stringMatching(/^--by lists all.*leave out user=u1$/m) });
    const window = await run([...set, "6 apples", "--for", "1h", "--reason", "r"]);
    expect(window.err.match(/such as/g)).toHaveLength(1);
  });

  it("keep an override before a limit for good that is set under it, and say so", async () => {
    await apply(login("2/h") + search);
    const set = ["override", "set", "user=u1", "search"];
    await run([...set, "7/s", "--for", "1h", "--reason", "sale"]);
    const { out } = await run([...set, "5/s", "--for-good", "--reason", "contract"]);
    expect(out).toContain("it holds when the override ends: 7/s in search, until");
    expect(out).not.toContain("in place of");
    expect((await run(["subject", "user=u1"])).out).toMatch(/7\/s +an override/);
  });

  const custom = (window: string) => ["override", "set", "user=u1", "search", window, "--for-good", "--reason", "r"];

  it("are shown before something of them is replaced, and asked for where it is something else", async () => {
    await apply(login("2/h") + search);
    // Nothing is there yet, or the same: there is no question.
    for (const words of [["tier", "set", "user=u1", "gold"], custom("7/s")]) {
      expect((await run(words)).code, words.join(" ")).toBe(0);
      expect((await run(words)).code, words.join(" ")).toBe(0);
    }
    const asked: string[] = [];
    const no = { answer: (question: string) => void asked.push(question) };
    const refused = [["tier", "set", "user=u1", "free"], ["tier", "clear", "user=u1"], custom("8/s")];
    for (const words of refused) {
      expect(await run(words)).toMatchObject({ code: 2, err: expect.stringContaining("Add --yes") });
      expect((await run(words, no)).code).toBe(1);
      const { code, out } = await run([...words, "--dry-run"]);
      expect([code, out]).toEqual([0, expect.stringContaining("Dry run")]);
    }
    expect(asked).toEqual([
      expect.stringMatching(/user=u1 has tier gold.* free/),
      expect.stringMatching(/user=u1 has tier gold/),
      expect.stringMatching(/user=u1 has 7\/s in search, for good, by admin: r.* 8\/s/),
    ]);
    const { subjects } = await json<{ subjects: unknown }>("override", "list", "user=u1");
    expect(subjects).toMatchObject([{ limits: [{ windows: ["7/s"] }] }]);
    expect((await run(["tier", "set", "user=u1", "free"], { answer: () => "y" })).out).toContain("before, it was gold");
    expect((await run([...custom("8/s"), "--yes"])).out).toContain(
      "before, it had 7/s in search, for good, by admin: r",
    );
  });

  it("lose an override before the limit for good that stands under it", async () => {
    await apply(login("2/h") + search);
    await run(custom("7/s"));
    await run(["override", "set", "user=u1", "search", "9/s", "--for", "1h", "--reason", "a sale"]);
    const remove = ["override", "delete", "user=u1", "search", "--yes"];
    expect((await run(remove)).out).toMatch(
      /^user=u1 has 7\/s in search, for good, by admin: r again \(before, it had 9\/s in search, until .*, by admin: a sale\)\.$/m,
    );
    expect((await run(remove)).out).toContain("user=u1 has the usual limits in search again");
    expect(await json("override", "list", "user=u1")).toEqual({ subjects: [] });
  });

  it("are not changed if another change came first, and the current state is shown", async () => {
    await apply(login("2/h") + search);
    await run(["tier", "set", "user=u1", "gold"]);
    await run(custom("7/s"));
    const late = [
      ["tier", "set", "user=u1", "free"],
      ["tier", "clear", "user=u1"],
      custom("8/s"),
      ["override", "delete", "user=u1", "search"],
    ];
    for (const [i, words] of late.entries()) {
      const faster = async (): Promise<string> => {
        expect((await run(["tier", "set", "user=u1", `tier-${i}`, "--yes"])).code).toBe(0);
        return "y";
      };
      const outcome = await run(words, { answer: faster });
      expect(outcome, words.join(" ")).toMatchObject({ code: 4, out: "" });
      expect(outcome.err).toMatch(
        new RegExp(`user=u1 .* nothing was done\\. Now it has tier tier-${i}; 7/s in search, for good, by admin: r`),
      );
    }
    expect((await run(["tier", "get", "user=u1"])).out).toBe("tier-3\n");
    expect(await json("override", "list", "user=u1")).toMatchObject({ subjects: [{ limits: [{ windows: ["7/s"] }] }] });
  });

  it("are not changed by --yes either if another change came first", async () => {
    await apply(login("2/h"));
    await run(["tier", "set", "user=u1", "gold"]);
    // The first answer is held back until another command has changed what it shows.
    let isFirst = true;
    const relay = createServer((request, response) => {
      const onward = askOnward(`${url}${request.url}`, { method: request.method, headers: request.headers });
      onward.on("response", async (answer) => {
        const body = await readText(answer);
        const before = isFirst;
        isFirst = false;
        if (before) expect((await run(["tier", "set", "user=u1", "silver", "--yes"])).code).toBe(0);
        response.writeHead(answer.statusCode ?? 0, answer.headers).end(body);
      });
      request.pipe(onward);
    });
    await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
    try {
      const env = { SLUICE_ADMIN_URL: `http://127.0.0.1:${(relay.address() as AddressInfo).port}` };
      const outcome = await run(["tier", "set", "user=u1", "free", "--yes", "--json"], { env });
      expect(outcome).toMatchObject({ code: 4, out: "", err: expect.stringContaining("Now it has tier silver") });
    } finally {
      relay.close();
    }
    expect((await run(["tier", "get", "user=u1"])).out).toBe("silver\n");
  });
});

describe("what a command says that is refused", () => {
  it("names the flags that were typed, and not fields of the API", async () => {
    const kill = ["kill-switch", "on", "open", "--reason", "r", "--yes"];
    expect(await run([...kill, "--for", "48h"])).toMatchObject({
      code: 2,
      err: '--for is "48h"; it should be from 1s to 1d\n',
    });
    await apply(login("2/h"));
    const long = await run(["override", "set", "ip=203.0.113.7", "login", "5/s", "--for", "400d", "--reason", "r"]);
    expect(long).toMatchObject({ code: 2, err: '--for is "400d"; it should be from 1s to 366d\n' });
    const path = await file("next.yaml", login("3/h"));
    const observe = await run(["policy", "apply", path, "--rollout", "--observe", "400d", "--yes"]);
    expect(observe.code).not.toBe(0);
    expect(observe.err).toContain("--observe: ");
    for (const { err } of [long, observe]) expect(err).not.toMatch(/_ms/);
    // A single problem is said once.
    const unknown = await run(["override", "set", "user=u1", "nothing", "5/s", "--for", "1h", "--reason", "r"]);
    expect(unknown).toMatchObject({ code: 1, err: "policy: is nothing, but no policy has that id\n" });
  });

  it("asks for a token where the server knows some, and does not say that it knows none", async () => {
    const words = ["reset", "user=u1", "--server", daemon.url];
    const none = await run(words, { env: { SLUICE_TOKEN: "" } });
    expect(none).toMatchObject({ code: 2, out: "" });
    expect(none.err).toMatch(/needs a token of role operator.*SLUICE_TOKEN.*--token-file/);
    expect(none.err).not.toContain("knows no tokens");
    const path = await file("token", `${token}\n`);
    expect((await run([...words, "--token-file", path], { env: { SLUICE_TOKEN: "" } })).code).toBe(0);
    expect((await run(["check", "user=u1", "--server", daemon.url], { env: { SLUICE_TOKEN: "" } })).code).toBe(0);
  });
});

describe("sluice policy diff of a file with subjects", () => {
  it("differs where they do, and names them", async () => {
    const subjects =
      "subjects:\n  - { user: u1, tier: gold }\n  - { user: u2, limits: [{ policy: search, windows: [5/s] }] }\n";
    const path = await file("subjects.yaml", `${login("2/h")}${search}${subjects}`);
    await apply(login("2/h") + search);
    const before = await run(["policy", "diff", path]);
    expect(before).toMatchObject({ code: 1, err: "" });
    expect(before.out).toMatch(/\nsubjects: 2 to create \(user=u1, user=u2\), 0 to change, 0 to delete\n$/);
    expect((await run(["policy", "apply", path, "--yes"])).code).toBe(0);
    expect(await json("policy", "diff", path)).toMatchObject({ same: true, subjects: { create: [], change: [] } });
    await run(["tier", "set", "user=u1", "silver", "--yes"]);
    await run(["tier", "set", "user=u3", "gold"]);
    expect((await run(["policy", "diff", path])).out).toContain("1 to change (user=u1), 0 to delete");
    const all = await run(["policy", "diff", path, "--replace", "--json"]);
    expect(all.code).toBe(1);
    expect(JSON.parse(all.out)).toMatchObject({ same: false, subjects: { change: ["user=u1"], delete: ["user=u3"] } });
  });
});

describe("what changes nothing for a subject", () => {
  const orders = `  - id: orders
    match: { endpoint: /v1/orders }
    limits: [{ name: own, by: [user], windows: [10/s burst 20], tiers: { gold: { windows: [100/s] } } }]
    on_failure: open
`;
  const until = ["--for", "1h", "--reason", "r"];

  it.each([
    [
      ["override", "set", "user=u1", "login", "5/s", ...until],
      /policy: changes nothing: policy login does not count by user; its limits count by ip\n/,
    ],
    [
      ["override", "set", "user=u1", "default", "5/s", ...until],
      /policy default does not count by user; its limits count by subject\n/,
    ],
    [
      ["tier", "set", "user=u1", "gould"],
      /tier: changes nothing: no policy has windows for the tier gould; policies have the tiers gold\n/,
    ],
    [
      ["tier", "set", "ip=203.0.113.7", "gold"],
      /tier: .*no limit that counts by ip has windows for the tier gold; those that have are in orders \(by user\)\n/,
    ],
  ])("is warned of, and refused with --strict: %j", async (words, warning) => {
    await apply(login("2/h") + orders);
    const strict = await run([...words, "--strict"]);
    expect(strict).toMatchObject({ code: 1, out: "" });
    expect(strict.err).toMatch(warning);
    expect(strict.err).toMatch(/\nnothing was done, because --strict refuses what is warned of\n$/);
    expect(await json("subject", words[2]!)).toMatchObject({ version: 0 });
    const { code, err } = await run(words);
    expect(code).toBe(0);
    expect(err).toMatch(warning);
    // Other clients of the API see the same.
    const again = await run([...words, "--json", "--yes"]);
    expect(JSON.parse(again.out)).toMatchObject({ warnings: [{ message: expect.stringMatching(/^changes nothing/) }] });
  });

  it("is not warned of where it has an effect, and an override shows which windows it replaces", async () => {
    await apply(login("2/h") + orders);
    expect(await run(["tier", "set", "user=u1", "gold", "--strict"])).toMatchObject({ code: 0, err: "" });
    const first = await run(["override", "set", "user=u1", "orders", "7/s", "--strict", ...until]);
    expect(first).toMatchObject({ code: 0, err: "" });
    expect(first.out).toMatch(/\n {2}orders \/ own: in place of 100\/s, from tier gold\n$/);
    const second = await run(["override", "set", "user=u2", "orders", "7/s", "--json", ...until]);
    expect(JSON.parse(second.out)).toMatchObject({
      warnings: [],
      in_place_of: [
        { policy: "orders", limit: "own", windows: [{ limit: 10, burst: 20 }], source: { kind: "policy" } },
      ],
    });
    const third = await run(["override", "set", "user=u2", "orders", "9/s", "--yes", ...until]);
    expect(third.out).toMatch(/orders \/ own: in place of 7\/s, from an override that ends in /);
  });
});

describe("sluice subject reset", () => {
  const orders = `  - id: orders
    match: { endpoint: /v1/orders }
    limits: [{ name: own, by: [user], windows: [1/h] }, { name: both, by: [tenant, user], windows: [1/h], missing: deny }]
    on_failure: open
`;

  it("resets every counter of a subject, those of policies for an endpoint too, and lists them", async () => {
    await apply(login("1/h") + search, "--wait");
    const request = { endpoint: "/login", ip: "203.0.113.7" };
    expect(await deny(request, 2)).toBe(true);
    const dry = await run(["subject", "reset", "ip=203.0.113.7", "--dry-run"]);
    expect(dry).toMatchObject({
      code: 0,
      out: expect.stringMatching(/would be reset.*\n {2}login \/ ip\n[\s\S]*Dry run/),
    });
    expect(await deny(request, 1)).toBe(true);
    expect(await run(["subject", "reset", "ip=203.0.113.7", "--why", "ticket 7", "--wait"])).toMatchObject({
      code: 0,
      out: "ip=203.0.113.7: reset, with blocks lifted:\n  login / ip\n  default / subject\n",
    });
    expect(await deny(request, 1)).toBe(false);
    expect(await json("audit", "--action", "subject.reset")).toMatchObject({
      records: [{ target: "ip:203.0.113.7", outcome: "done", why: "ticket 7", generation: expect.any(Number) }],
    });
  });

  it("says which limits need more dimensions, and takes them", async () => {
    await apply(`${login("1/h")}${orders}`, "--wait");
    const request = { endpoint: "/v1/orders", user: "u1", tenant: "acme" };
    expect(await deny(request, 2)).toBe(true);
    const some = await run(["subject", "reset", "user=u1", "--policy", "orders"]);
    expect(some).toMatchObject({ code: 0, out: expect.stringMatching(/:\n {2}orders \/ own\n$/) });
    expect(some.err).toBe("orders/both counts by tenant and user, and was left as it is; add tenant=… to reset it.\n");
    expect(await deny(request, 1)).toBe(true);
    const all = await json<{ limits: string[]; skipped: string[] }>("subject", "reset", "user=u1", "tenant=acme");
    expect(all).toMatchObject({ limits: ["orders/own", "orders/both", "default/subject"], skipped: [] });
    expect(await deny(request, 1)).toBe(false);
  });

  it("ends with 1 where nothing was reset, and is for operators", async () => {
    await apply(login("1/h"));
    expect(await run(["subject", "reset", "device=d1"])).toMatchObject({
      code: 1,
      out: "Nothing was reset: no limit counts by device=d1 alone.\n",
    });
    expect((await run(["subject", "reset", "user=u1", "--policy", "login"])).code).toBe(1);
    const viewer = await json<{ token: { token: string } }>("token", "make", "--name", "v", "--role", "viewer");
    const env = { SLUICE_TOKEN: viewer.token.token };
    expect(await run(["subject", "reset", "user=u1"], { env })).toMatchObject({ code: 3, out: "" });
  });
});

describe("sluice kill-switch", () => {
  it("asks for its mode to be typed, is in force at once, and is seen", async () => {
    const on = ["kill-switch", "on", "closed", "--for", "30m", "--reason", "attack"];
    expect(await run(on)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/EVERY REQUEST WILL BE DENIED[\s\S]*--yes/),
    });
    expect((await run(on, { answer: () => "y" })).code).toBe(1);
    expect(await deny({ user: "u1" }, 1)).toBe(false);
    expect(await run([...on, "--wait"], { answer: () => "closed" })).toMatchObject({
      code: 0,
      out: expect.stringContaining("KILL SWITCH CLOSED"),
    });
    expect(await deny({ user: "u1" }, 1)).toBe(true);
    expect(await json("kill-switch", "status")).toMatchObject({ mode: "closed", reason: "attack", author: "admin" });
    expect((await run(["kill-switch", "off", "--yes", "--wait"])).out).toContain("is off; policies decide");
    expect((await run(["kill-switch", "off", "--dry-run"])).code).toBe(1);
    expect((await run(["kill-switch", "off", "--json"])).code).toBe(1);
    expect((await run(["kill-switch", "off"])).code).toBe(1);
    expect((await run(["kill-switch", "off"])).out).toContain("is off already; nothing was changed");
    expect(await deny({ user: "u1" }, 1)).toBe(false);
  });

  it("needs a reason, a mode that there is, and at most a day", async () => {
    expect((await run(["kill-switch", "on", "open", "--yes"])).code).toBe(2);
    expect((await run(["kill-switch", "on", "ajar", "--yes", "--reason", "r"])).code).toBe(2);
    expect((await run(["kill-switch", "on", "open", "--yes", "--reason", "r", "--for", "2d"])).code).toBe(2);
    expect(await json("kill-switch", "status")).toEqual({ mode: "off" });
  });
});

describe("sluice token", () => {
  it("makes tokens that every node knows, lists them, and revokes them", async () => {
    const made = await run(["token", "make", "--name", "look", "--role", "viewer", "--expires", "12h"]);
    expect(made.code, made.err).toBe(0);
    const path = await file("token", made.out);
    const asViewer = { env: { SLUICE_TOKEN: "" } };
    expect((await run(["nodes", "--token-file", path], asViewer)).code).toBe(0);
    expect(await run(["tier", "set", "user=u1", "a", "--token-file", path], asViewer)).toMatchObject({ code: 3 });
    expect(await run(["token", "make", "--name", "look", "--role", "viewer"])).toMatchObject({ code: 4 });
    const { tokens } = await json<{ tokens: { name: string }[] }>("token", "list");
    expect(tokens.map(({ name }) => name).sort()).toEqual(["admin", "look"]);
    expect(JSON.stringify(tokens)).not.toContain(made.out.trim());
    expect((await run(["token", "revoke", "look"], { answer: () => "y" })).code).toBe(0);
    await expect.poll(async () => (await run(["nodes", "--token-file", path], asViewer)).code).toBe(3);
    expect((await run(["token", "revoke", "look", "--yes"])).code).toBe(1);
    expect((await run(["token", "list", "--all"])).out).toMatch(/^look +viewer +- +revoked/m);
    expect((await run(["token", "make", "--name", "x", "--role", "king"])).code).toBe(2);
    expect((await run(["token", "make", "--name", "x", "--role", "editor"])).err).toContain("--team");
  });
});

describe("sluice token revoke", () => {
  it("of the token that it is asked with is done, and says so", async () => {
    const { out } = await run(["token", "make", "--name", "second", "--role", "admin"]);
    const own = { env: { SLUICE_TOKEN: out.trim() } };
    expect(await run(["token", "revoke", "second", "--yes"], own)).toMatchObject({
      code: 0,
      out: "The token of second is revoked.\n",
    });
    expect((await run(["nodes"], own)).code).toBe(3);
  });
});

describe("sluice token make --store", () => {
  const rescue = ["token", "make", "--name", "rescue", "--role", "admin", "--store"];
  const lost = { env: { SLUICE_TOKEN: "", SLUICE_ADMIN_URL: "http://127.0.0.1:9" } };

  it("makes an admin token without one, which running servers know and the audit records", async () => {
    const made = await run([...rescue, `sqlite:${join(folder, "store.db")}`, "--expires", "1d", "--why", "lost"], lost);
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^sluice_[\w-]{43}\n$/) });
    expect(made.err).toContain("rescue (admin) has a token until");
    const env = { SLUICE_TOKEN: made.out.trim() };
    await expect.poll(async () => (await run(["token", "list"], { env })).code, { timeout: 30_000 }).toBe(0);
    const { records } = await json<{ records: unknown[] }>("audit", "--kind", "token", "--target", "rescue");
    expect(records).toMatchObject([
      { actor: "sluice", action: "token.make", outcome: "done", why: "made at the policy store itself: lost" },
    ]);
    expect(JSON.stringify(records)).not.toContain(made.out.trim());
  });

  it("takes the address from the environment, prints what the API answers, and tries", async () => {
    const env = { ...lost.env, SLUICE_STORE_URL: `sqlite:${join(folder, "store.db")}` };
    const tried = await run([...rescue, "--dry-run"], { env });
    expect(tried).toMatchObject({ code: 0, out: expect.stringContaining("Dry run: nothing was changed.") });
    const { out } = await run([...rescue, "--json"], { env });
    expect(JSON.parse(out)).toMatchObject({
      dry_run: false,
      generation: expect.any(Number),
      token: { name: "rescue", role: "admin", created_by: "sluice", token: expect.stringMatching(/^sluice_/) },
    });
    expect(await run(rescue, { env })).toMatchObject({ code: 4, err: expect.stringContaining("has this name") });
    const { tokens } = await json<{ tokens: { name: string }[] }>("token", "list");
    expect(tokens.map(({ name }) => name).sort()).toEqual(["admin", "rescue"]);
  });

  it("makes nothing in a store that no server uses, nor a store", async () => {
    const path = join(folder, "elsewhere.db");
    expect(await run([...rescue, `sqlite:${path}`], lost)).toMatchObject({
      code: 2,
      err: expect.stringContaining("there is no policy store"),
    });
    await expect(stat(path)).rejects.toThrow("ENOENT");
    await (await openPolicyStore({ url: `sqlite:${path}` })).close();
    expect(await run([...rescue, `sqlite:${path}`], lost)).toMatchObject({
      code: 2,
      err: expect.stringContaining("no server has used"),
    });
    expect(await run([...rescue, "mysql://h"], lost)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^--store/),
    });
    expect(await run(rescue, lost)).toMatchObject({ code: 2, err: expect.stringContaining("SLUICE_STORE_URL") });
  });

  it.each([["--admin", "http://127.0.0.1:8090"], ["--token-file", "t"], ["--file", "t"], ["--entry"]])(
    "takes no %s beside",
    async (...words) => {
      const outcome = await run([...rescue, `sqlite:${join(folder, "store.db")}`, ...words], lost);
      expect(outcome).toMatchObject({ code: 2, err: expect.stringContaining(`leave out ${words[0]}`) });
    },
  );
});

describe("sluice audit and nodes", () => {
  it("tell who did what to whom, and what was refused", async () => {
    await apply(login("2/h"), "--why", "because");
    await run(["tier", "set", "user=u1", "gold"]);
    const { records } = await json<{ records: unknown[] }>("audit", "--kind", "policy", "--since", "1h");
    expect(records).toMatchObject([{ actor: "admin", action: "policy.put", target: "login", why: "because" }]);
    expect((await run(["audit", "--target", "user=u1"])).out).toMatch(/subject\.tier +user=u1 +done/);
    expect((await run(["audit", "--action", "policy.put", "--details"])).out).toMatch(/\n {2}after {2}\{.*"2\/h"/);
    const { out } = await run(["token", "make", "--name", "look", "--role", "viewer"]);
    expect(
      (await run(["kill-switch", "on", "open", "--yes", "--reason", "r"], { env: { SLUICE_TOKEN: out.trim() } })).code,
    ).toBe(3);
    await expect
      .poll(async () => (await run(["audit", "--outcome", "refused"])).out)
      .toMatch(/look \(viewer\) +127\.0\.0\.1 +kill_switch\.on +refused/);
    expect((await run(["audit", "--outcome", "maybe"])).code).toBe(2);
    expect(await run(["audit", "--kind", "polcy"])).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^--kind is "polcy"; it should be policy, .*rollout, .* or server\n$/),
    });
    expect(await run(["audit", "--action", "put"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /^--action is "put"; it should be a kind and what was done to it, such as policy\.put/,
      ),
    });
    expect((await run(["audit", "--actor", "nobody"])).out).toBe("The audit has no such records.\n");
  });

  it("show a node that is behind, and waiting for it ends", async () => {
    expect((await run(["nodes"])).code).toBe(0);
    const store = await openPolicyStore({ url: `sqlite:${join(folder, "store.db")}` });
    const seenMs = Date.now() + 3_600_000;
    const late = {
      id: "late",
      name: "late",
      version: "0",
      startedMs: 0,
      seenMs,
      generation: 0,
      appliedMs: 0,
      details: "{}",
    };
    await store.note((note) => note.putNode(late));
    await store.close();
    const nodes = await run(["nodes"]);
    expect(nodes).toMatchObject({ code: 1, out: expect.stringMatching(/^late +behind/m) });
    const waited = await apply(login("2/h"), "--wait", "--timeout", "1ms");
    expect(waited).toMatchObject({ code: 6, err: expect.stringContaining("late (generation 0)") });
    expect(waited.out).toContain("Applied");
    const told = await run(["tier", "set", "user=u1", "gold", "--timeout", "1ms", "--json"]);
    expect(told.code).toBe(6);
    expect(JSON.parse(told.out)).toMatchObject({ subject: { tier: "gold" } });
  });
});

describe("what is dangerous", () => {
  it("is not done without --yes if there is no terminal to ask at, nor if the answer is no", async () => {
    await apply(login("2/h") + search);
    await apply(login("3/h") + search);
    await apply(`policies:\n${search.replace("30/m", "40/m")}`, "--rollout", "50%,100%", "--observe", "0s");
    await run(["override", "set", "ip=203.0.113.7", "login", "9/h", "--for", "1h", "--reason", "r"]);
    await run(["tier", "set", "ip=203.0.113.7", "gold"]);
    await run(["token", "make", "--name", "look", "--role", "viewer"]);
    await run(["kill-switch", "on", "open", "--reason", "r", "--yes"]);
    const path = await file("less.yaml", login("4/h"));
    const dangerous = [
      ["policy", "apply", path],
      ["policy", "apply", path, "--replace"],
      ["policy", "revert", "login", "--to", "1"],
      ["policy", "delete", "search"],
      ["policy", "rollout", "search", "--finish"],
      ["policy", "rollout", "search", "--roll-back"],
      ["policy", "rollout", "search", "--advance"],
      ["override", "delete", "ip=203.0.113.7", "login"],
      ["override", "set", "ip=203.0.113.7", "login", "8/h", "--for", "1h", "--reason", "r"],
      ["tier", "set", "ip=203.0.113.7", "silver"],
      ["tier", "clear", "ip=203.0.113.7"],
      ["kill-switch", "on", "closed", "--reason", "r"],
      ["kill-switch", "off"],
      ["token", "revoke", "look"],
    ];
    const ours = async (): Promise<unknown[]> =>
      (await json<{ records: unknown[] }>("audit", "--actor", "admin", "--limit", "1000")).records;
    const before = await ours();
    for (const words of dangerous) {
      const nobody = await run(words);
      expect(nobody, words.join(" ")).toMatchObject({ code: 2, err: expect.stringContaining("Add --yes") });
      expect(await run(words, { answer: () => "" }), words.join(" ")).toMatchObject({ code: 1 });
    }
    expect(await ours()).toEqual(before);
    expect((await run(["kill-switch", "on", "closed", "--reason", "r"])).err).toContain("It is open already, until");
  });
});

describe("plans", () => {
  const file = `policies:
  - { id: orders, match: { endpoint: /orders }, on_failure: open, limits: [{ by: [user], windows: [5/s] }] }
  - { id: search, match: { endpoint: /search }, on_failure: open, limits: [{ by: [user], windows: [7/s] }] }
`;

  it("are set, edited and deleted in all policies at once, and shown with who has them", async () => {
    await apply(file);
    expect((await run(["plan", "list"])).out).toContain("No policy has windows for a plan");
    const tried = await run(["plan", "set", "pro", "orders", "50/s", "--dry-run"]);
    expect(tried).toMatchObject({
      code: 0,
      out: expect.stringMatching(/orders, version 2\n[\s\S]*\+ +- 50\/s[\s\S]*Dry run/),
    });
    expect((await run(["plan", "set", "pro", "orders", "50/s"])).code).toBe(2);
    expect((await run(["plan", "set", "pro", "orders", "50/s", "--yes"])).code).toBe(0);
    const answer = async (): Promise<string> => {
      await run(["plan", "set", "pro", "orders", "51/s", "--yes"]);
      return "y";
    };
    expect(await run(["plan", "set", "pro", "orders", "52/s"], { answer })).toMatchObject({
      code: 4,
      err: expect.stringContaining("changed by another command meanwhile"),
    });
    const shown = await run(["plan", "show", "pro", "-o", "yaml"]);
    const edited = shown.out.replace("51/s", "60/s").concat("      - { policy: search, windows: [70/s] }\n");
    expect((await run(["plan", "edit", "pro", "--file", "-", "--yes"], { input: edited })).code).toBe(0);
    const editor = { EDITOR: "sed -i s,70/s,80/s," };
    expect((await run(["plan", "edit", "pro", "--yes"], { env: editor })).out).toContain("Done");
    expect(await run(["plan", "edit", "pro", "--yes"], { env: { EDITOR: "false" } })).toMatchObject({ code: 2 });
    await run(["tier", "set", "user=u1", "pro"]);
    expect((await run(["plan", "show", "pro"])).out).toMatch(
      /1 by user[\s\S]*orders \/ user +60\/s[\s\S]*search \/ user +80\/s/,
    );
    expect((await run(["tier", "list"])).out).toMatch(/pro +2 +2 +1\n/);
    expect((await run(["subject", "list", "--tier", "pro"])).out).toMatch(/user=u1 +pro +0\n/);
    expect((await run(["subject", "list", "--tier", "gone"])).out).toContain("no such subjects");
    expect((await run(["plan", "set", "pro", "search", "--remove", "--yes"])).code).toBe(0);
    expect(await run(["plan", "delete", "pro", "--yes"])).toMatchObject({
      code: 0,
      err: expect.stringContaining("1 by user"),
    });
    expect(await json("policy", "get", "orders")).toMatchObject({
      document: { limits: [{ by: ["user"], windows: ["5/s"] }] },
    });
  });
});

describe("one policy, or one subject, for a time", () => {
  const orders = { user: "u1", endpoint: "/orders" };

  it("is what a server decides recorded: started, listed, stopped and deleted", async () => {
    expect((await run(["recording", "list"])).out).toContain("start it with --recordings");
    await daemon.close();
    await start({ recordings: join(folder, "recordings") });
    expect((await run(["recording", "list"])).out).toBe("There are no recordings.\n");
    expect((await run(["recording", "start", "--share", "200%"])).code).toBe(2);
    expect((await run(["recording", "start", "--dry-run"])).out).toContain("Dry run");
    const sample = ["--share", "10%", "--share-by", "tenant", "--hash", "user,ip"];
    const { recording } = await json<{ recording: { id: string; hashed: string[] } }>("recording", "start", ...sample);
    expect(recording.hashed).toEqual(["user", "ip"]);
    expect((await run(["recording", "list"])).out).toMatch(/recording .*10% by tenant/);
    expect((await run(["recording", "stop", recording.id])).out).toMatch(/ done .*\nIt has 0 requests/s);
    expect((await run(["recording", "delete", recording.id])).code).toBe(2);
    expect((await run(["recording", "delete", recording.id, "--yes"])).code).toBe(0);
    expect((await run(["recording", "list"])).out).toBe("There are no recordings.\n");
  });

  it("is a policy disabled and enabled, on this node at once, and shown until then", async () => {
    await apply(
      "policies: [{ id: orders, match: { endpoint: /orders }, on_failure: open, limits: [{ by: [user], windows: [1/h] }] }]\n",
    );
    expect(await run(["policy", "disable", "orders", "--yes"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--reason"),
    });
    expect((await run(["policy", "disable", "orders", "--for", "8d", "--reason", "r"])).code).toBe(2);
    expect((await run(["policy", "disable", "orderz", "--reason", "r", "--yes"])).code).toBe(1);
    expect((await run(["policy", "disable", "orders", "--reason", "r", "--dry-run"])).out).toContain("Dry run");
    expect((await run(["policy", "disabled"])).out).toBe("No policy is disabled.\n");
    expect((await run(["policy", "disable", "orders", "--reason", "wrong", "--yes", "--wait"])).code).toBe(0);
    expect(await deny(orders, 3)).toBe(false);
    expect((await run(["policy", "disabled"])).out).toMatch(/orders +allow .*wrong/);
    expect((await run(["policy", "list"])).out).toContain("disabled (allow)");
    expect((await run(["policy", "enable", "orders", "--wait"])).out).toBe("Policy orders limits again.\n");
    expect(await deny(orders, 3)).toBe(true);
    expect(await run(["policy", "enable", "orders"])).toMatchObject({
      code: 1,
      out: expect.stringContaining("not disabled"),
    });
  });

  it("is a subject blocked and unblocked, and shown until then", async () => {
    expect((await run(["subject", "block", "user=u1", "--yes"])).code).toBe(2);
    expect((await run(["subject", "block", "user=u1", "--reason", "scrapes", "--dry-run"])).out).toContain("Dry run");
    expect(await run(["subject", "unblock", "user=u1"])).toMatchObject({ code: 1 });
    const done = await run(["subject", "block", "user=u1", "--for", "2h", "--reason", "scrapes", "--yes", "--wait"]);
    expect(done).toMatchObject({ code: 0, out: expect.stringMatching(/user=u1 is blocked, until .*: scrapes/) });
    expect(await deny(orders, 1)).toBe(true);
    expect((await run(["subject", "user=u1"])).out).toMatch(/blocked +until .*scrapes/);
    expect((await run(["subject", "list", "--by", "user"])).out).toMatch(/user=u1 +- +0 +yes/);
    expect((await run(["subject", "block", "user=u1", "--policy", "gone", "--reason", "r", "--yes"])).err).toContain(
      "no policy has the id gone",
    );
    expect((await run(["subject", "unblock", "user=u1", "--wait"])).out).toBe("user=u1 is blocked no longer.\n");
    expect(await deny(orders, 1)).toBe(false);
  });
});

describe("why something is done", () => {
  it("is said with --why or --reason, whatever the command", async () => {
    await apply(login("2/h"), "--reason", "one");
    await run(["override", "set", "ip=203.0.113.7", "login", "9/h", "--for", "1h", "--why", "two"]);
    await run(["kill-switch", "on", "open", "--why", "three", "--yes"]);
    await run(["token", "make", "--name", "a", "--role", "check", "--reason", "four"]);
    const { records } = await json<{ records: { why: string }[] }>("audit", "--since", "1h");
    expect(records.map(({ why }) => why).slice(0, 4)).toEqual(["four", "three", "two", "one"]);
    const bare = ["override", "set", "ip=203.0.113.7", "login", "9/h", "--for", "1h"];
    for (const words of [bare, [...bare, "--reason", " "], ["kill-switch", "on", "open", "--yes"]])
      expect(await run(words)).toMatchObject({ code: 2, err: expect.stringContaining("--reason") });
  });
});

describe("what others wrote", () => {
  it("moves no terminal of who looks at it, in tables, files or JSON", async () => {
    const nasty = "a\u001b]0;title\u0007 \u001b[2J\u009b31m\u007f\u202eb\r\nc";
    const document = {
      id: "login",
      description: nasty,
      limits: [{ by: ["user"], windows: ["5/h"] }],
      on_failure: "open",
    };
    await apply(JSON.stringify({ policies: [document] }), "--why", nasty);
    await run(["override", "set", `user=${nasty}`, "login", "9/h", "--for", "1h", "--reason", nasty]);
    await run(["tier", "set", "user=u1", "gold", "--why", nasty]);
    await run(["kill-switch", "on", "open", "--yes", "--reason", nasty]);
    const path = await file("other.yaml", login("2/h"));
    const looks = [
      ["policy", "list"],
      ["policy", "get", "login"],
      ["policy", "history", "login"],
      ["policy", "diff", path],
      ["policy", "export"],
      ["policy", "apply", path, "--dry-run"],
      ["policy", "revert", "login", "--to", "1", "--dry-run"],
      ["override", "list", "--by", "user"],
      ["override", "set", `user=${nasty}`, "login", "8/h", "--for", "1h", "--reason", "r", "--dry-run"],
      ["subject", `user=${nasty}`],
      ["kill-switch", "status"],
      ["kill-switch", "off", "--dry-run"],
      ["audit"],
      ["audit", "--details"],
      ["status", "--server", daemon.url],
    ];
    const obeyed = /(?!\n)\p{Cc}/u;
    for (const words of looks) {
      for (const more of words.includes("--details") ? [[]] : [[], ["--json"]]) {
        const { out, err } = await run([...words, ...more]);
        expect(out, words.join(" ")).not.toBe("");
        expect(out + err, [...words, ...more].join(" ")).not.toMatch(obeyed);
        if (more.length > 0) JSON.parse(out);
      }
    }
  });
});

describe("a command that asks a control plane", () => {
  it("reads --timeout before it changes anything", async () => {
    const { code, err } = await run(["tier", "set", "user=u1", "gold", "--timeout", "soon"]);
    expect([code, err]).toEqual([2, expect.stringMatching(/^--timeout is "soon"/)]);
    expect((await run(["tier", "get", "user=u1"])).out).toBe("none\n");
  });

  it("tells who may not do something which role they have, which they need, and how to get it", async () => {
    const made = await run(["token", "make", "--name", "ann", "--role", "viewer"]);
    const { code, err } = await run(["tier", "set", "user=u1", "gold"], { env: { SLUICE_TOKEN: made.out.trim() } });
    expect([code, err]).toEqual([
      3,
      "not allowed: this needs role operator, and ann has role viewer. Ask with a token of that role (SLUICE_TOKEN or " +
        "--token-file); an admin makes one: sluice token make --name NAME --role operator\n",
    ]);
  });

  it("names what an editor may not do: the policy of several, --replace, subjects", async () => {
    const made = await run(["token", "make", "--name", "ed", "--role", "editor", "--team", "shop"]);
    const env = { SLUICE_TOKEN: made.out.trim() };
    const edit = async (text: string, ...more: string[]) =>
      (await run(["policy", "apply", await file("edit.yaml", text), "--yes", ...more], { env })).err;
    const wide = "  - { id: wide, limits: [{ by: [user], windows: [1/s] }], on_failure: open }\n";
    expect(await edit(login("2/h") + wide)).toMatch(/^not allowed: policy wide: match: is for every request/);
    expect(await edit(login("2/h"), "--replace")).toMatch(/^--replace changes more .*needs role admin/);
    expect(await edit(`${login("2/h")}subjects: [{ user: u1, tier: gold }]\n`)).toMatch(
      /^a file with subjects changes/,
    );
  });

  it("does not pass over what contradicts itself or means nothing", async () => {
    await apply(login("2/h"));
    const path = await file("p.yaml", login("3/h"));
    for (const [words, message] of [
      [["audit", "--since", "1h", "--until", "2h"], /^--until 2h is before --since 1h/],
      [["policy", "diff", path, "--from", "1"], /^--from is for versions of a policy, and .*p\.yaml is a file/],
      [["top", "--once", "--every", "5s"], /^--every says how often to refresh/],
      [
        ["token", "make", "--name", "x", "--role", "check", "--file", "t", "--entry"],
        /^--file adds .*leave out --entry/,
      ],
    ] as const)
      expect(await run(words)).toMatchObject({ code: 2, err: expect.stringMatching(message) });
  });

  it("says that a team owns no policy, not that there is none", async () => {
    await apply(login("2/h"));
    expect((await run(["policy", "list", "--owner", "shop"])).out).toMatch(/^Team shop owns no policy\./);
  });

  it("says what to do about a token, and never shows one", async () => {
    const env = { SLUICE_TOKEN: "", SLUICE_ADMIN_TOKEN_FILE: daemon.firstToken!.file };
    const none = await run(["policy", "list"], { env });
    expect(none).toMatchObject({
      code: 3,
      err: expect.stringMatching(/needs a token.*--token-file .*store\.db-admin-token/),
    });
    expect(none.err).not.toContain(token);
    const wrong = await run(["policy", "list"], { env: { SLUICE_TOKEN: "hunter2" } });
    expect(wrong).toMatchObject({ code: 3, err: expect.stringContaining("SLUICE_TOKEN is not accepted") });
    expect(wrong.err).not.toContain("hunter2");
    expect(await run(["policy", "list", "--token-file", join(folder, "none")])).toMatchObject({ code: 2 });
    expect(
      await run(["policy", "list", "--token-file", daemon.firstToken!.file], { env: { SLUICE_TOKEN: "" } }),
    ).toMatchObject({ code: 0 });
  });

  it("tells a control plane that is not there from one that is something else", async () => {
    const elsewhere = await run(["policy", "list", "--admin", daemon.url]);
    expect(elsewhere).toMatchObject({ code: 5, err: expect.stringContaining("is it the admin port") });
    await daemon.close();
    const gone = await run(["policy", "list"]);
    expect(gone).toMatchObject({
      code: 5,
      err: expect.stringMatching(/^no answer from .*connection was refused.*--admin/),
    });
    expect(await run(["policy", "list", "--admin", "nowhere"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^--admin/),
    });
    expect(await run(["policy", "list", "--admin", "http://u:hunter2@localhost"])).toMatchObject({
      code: 2,
      err: expect.not.stringContaining("hunter2"),
    });
  });
});
