import { EventEmitter } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "./daemon.ts";
import { runProgram } from "./program.ts";
import { parseSettings, type SettingEntry, settingsTable } from "./settings.ts";
import { routes } from "./transports/http/routes.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const http = await readFile(`${root}docs/http.md`, "utf8");
const cli = await readFile(`${root}docs/cli.md`, "utf8");

let daemon: Daemon;

beforeAll(async () => {
  const reading = parseSettings({}, { httpPort: "0", config: `${root}config/policies.yaml` });
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
      if (answer === undefined) expect(response.status, path).toBe(200);
      else expect(withoutTimes(JSON.parse(text)), `${path} ${body}`).toEqual(withoutTimes(JSON.parse(answer)));
    }
  });

  it("names every route, and every metric there is", async () => {
    for (const { path } of routes) expect(http, path).toContain(path);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    for (const [, name] of metrics.matchAll(/^# TYPE (sluice_\w+)/gm)) expect(http, name).toContain(name);
  });
});

describe("docs/cli.md", () => {
  it("names every setting with its variable and default", () => {
    const entries: SettingEntry<unknown>[] = Object.values(settingsTable);
    for (const { flag, env, fallback, fallbackText } of entries) {
      const shown = fallback === undefined ? "" : `\`${fallbackText ?? fallback}\``;
      expect(cli, flag).toMatch(new RegExp(`\\| \`${flag}\` \\| \`${env}\` \\| ${shown || ".*"} \\|`));
    }
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
      expect(out, words).toBe(printed);
    }
  });
});
