import { EventEmitter } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { runProgram } from "@sluice/cli";
import { startServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import type { SettingEntry } from "../settings/setting-entry.ts";
import { settingSections, settingsTable } from "../settings/settings.ts";
import { httpRoutes as routes } from "./api-tables.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const http = await readFile(`${root}docs/http.md`, "utf8");
const cli = await readFile(`${root}docs/cli.md`, "utf8");
const leases = await readFile(`${root}docs/leases.md`, "utf8");
const redis = await readFile(`${root}docs/redis.md`, "utf8");

let daemon: Daemon;

beforeAll(async () => {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config: `${root}config/policies.yaml` });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
});

afterAll(() => daemon.close());

/** Every curl in the page, in order, with the JSON that the page says is answered, if it says so. */
function conversations(page: string): { path: string; body: string; accept: string; answer: string | undefined }[] {
  const blocks = [...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
    language,
    text: text!,
  }));
  return blocks.flatMap(({ language, text }, index) => {
    const curl = /^curl .*?http:\/\/127\.0\.0\.1:8080(\S+)[\s\S]*-d '(.*)'\n$/.exec(text);
    if (language !== "sh" || curl === null) return [];
    const next = blocks[index + 1];
    const accept = /accept: ([^']+)'/.exec(text)?.[1] ?? "*/*";
    return [{ path: curl[1]!, body: curl[2]!, accept, answer: next?.language === "json" ? next.text : undefined }];
  });
}

/** Moments and waits differ from run to run; everything else must be as written. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, part) => {
      if (key === "detail") return String(part).replace(/come back in \d+ seconds?/, "come back in (a while)");
      return /^re(set|try)_/.test(key) && typeof part !== "object" ? `(${typeof part})` : part;
    }),
  );
}

describe("docs/http.md", () => {
  it("shows what the server really answers", async () => {
    const asked = conversations(http);
    expect(asked.length).toBeGreaterThanOrEqual(7);
    for (const { path, body, accept, answer } of asked) {
      const response = await fetch(daemon.url + path, {
        method: "POST",
        headers: { "content-type": "application/json", accept },
        body,
      });
      const text = await response.text();
      if (answer === undefined) expect(response.ok, path).toBe(true);
      else expect(withoutTimes(JSON.parse(text)), `${path} ${body}`).toEqual(withoutTimes(JSON.parse(answer)));
    }
  });

  it("names every route", () => {
    for (const { path } of routes) expect(http, path).toContain(path);
  });
});

describe("docs/redis.md", () => {
  const entries = Object.entries(settingsTable) as [string, SettingEntry<unknown>][];

  it("names every setting of remote counters", () => {
    for (const [name, { env, flag = env, fallbackText, fallback }] of entries) {
      if (!name.startsWith("redis") && name !== "deadlineMs") continue;
      const [row] = redis.split("\n").filter((line) => line.startsWith("| ") && line.includes(`\`${env}\``));
      expect(row, env).toContain(`\`${flag}\``);
      const shown = fallbackText ?? fallback;
      if (shown !== undefined) expect(row, env).toContain(`| \`${shown}\` |`);
    }
  });

  it("gives a user all the permissions that are needed", async () => {
    const [, permissions = ""] = /^ACL SETUSER (sluice on .*)$/m.exec(redis) ?? [];
    const server = await startServer({ flavor: "valkey" });
    try {
      await server.command("ACL", "SETUSER", ...permissions.replace("PASSWORD", "hunter2").split(" "));
      const env = { SLUICE_REDIS_URL: `redis://sluice:hunter2@127.0.0.1:${server.port}`, SLUICE_DEADLINE: "5s" };
      const reading = parseSettings(env, { httpPort: "0", grpcPort: "off" });
      if (reading.kind === "problems") throw new Error("settings");
      const logged: string[] = [];
      const log = { debug: say, info() {}, warn: say, error: say };
      function say(event: string): void {
        logged.push(event);
      }
      const { limiter, close } = await startDaemon({ settings: reading.settings, log });
      try {
        limiter.usePolicies({
          policies: (["gcra", "fixed_window", "sliding_window", "sliding_log"] as const).map((algorithm) => ({
            id: algorithm,
            limits: [{ by: ["user"], algorithm, windows: ["2/m"], block_for: "1m" }],
          })),
        });
        const request = { dimensions: { user: "u" }, id: "i", receipt: true };
        const { receipt, degraded } = await limiter.check(request);
        expect(degraded).toBeUndefined();
        expect(await limiter.give(receipt!)).toBe(true);
        await limiter.charge({ dimensions: { user: "u" } });
        expect(await limiter.check({ dimensions: { user: "u" }, cost: 2 })).toMatchObject({ reason: "over_limit" });
        await limiter.explain({ dimensions: { user: "u" } });
        await limiter.reset({ dimensions: { user: "u" } });
        await expect.poll(() => logged, { timeout: 30_000 }).toEqual(["redis.inspected"]);
      } finally {
        await close();
      }
    } finally {
      await server.close();
    }
  });
});

describe("docs/leases.md", () => {
  it("names every setting of leases with its variable and default", () => {
    const entries = Object.entries(settingsTable) as [string, SettingEntry<unknown>][];
    const named = entries.filter(([name]) => name.startsWith("lease"));
    expect(named).toHaveLength(4);
    for (const [, { flag, env, fallback, fallbackText }] of named)
      expect(leases, env).toContain(`\n| \`${flag}\` | \`${env}\` | \`${fallbackText ?? fallback}\` |`);
  });
});

describe("docs/cli.md", () => {
  it("names every setting with its variable and default", () => {
    const entries: SettingEntry<unknown>[] = Object.values(settingsTable);
    for (const { flag, env, fallback, fallbackText } of entries) {
      const text = fallbackText ?? fallback;
      const shown = text === undefined ? ".*" : `\`${text}\``;
      const option = flag === undefined ? "" : `\`${flag}\` `;
      expect(cli, env).toMatch(new RegExp(`^\\| ${option}\\| \`${env}\` \\| ${shown} \\|`, "m"));
    }
  });

  it("lists the settings in the sections and the order of serve --help", () => {
    const [, serve = ""] = /\n## Serve\n([\s\S]*?)\n## /.exec(cli) ?? [];
    const shown = serve.split("\n### ").flatMap((part) => {
      const names = [...part.matchAll(/^\|[^|]*\| `([A-Z\d_]+)` \|/gm)].map(([, env]) => env);
      return names.length === 0 ? [] : [[part.split("\n")[0], names]];
    });
    expect(shown).toEqual(
      settingSections.map(({ heading, names }) => [heading, names.map((name) => settingsTable[name].env)]),
    );
  });

  it("shows what the command really prints", async () => {
    const sessions = [...cli.matchAll(/```console\n\$ sluice (.*)\n([\s\S]*?)```/g)];
    expect(sessions).toHaveLength(3);
    for (const [, words, printed] of sessions) {
      let out = "";
      const code = await runProgram({
        args: words!.split(" ").map((word) => (word === "config/policies.yaml" ? root + word : word)),
        env: {},
        terminal: { stdout: { write: (text: string) => (out += text) }, stderr: { write: () => true } },
        signals: new EventEmitter(),
      });
      expect(code, words).toBe(0);
      expect(out.replaceAll(root, ""), words).toBe(printed);
    }
  });
});
