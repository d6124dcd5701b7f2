import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../../../boot/daemon.ts";
import { parseSettings } from "../../../settings/parse-settings.ts";
import { silentLog } from "../../../testing/test-service.ts";
import { commands } from "./commands.ts";
import { prefixByCode } from "./errors.ts";
import { checkOptions } from "./parse-check.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../../../../..", import.meta.url));
const page = await readFile(`${root}docs/resp.md`, "utf8");

let daemon: Daemon;
let port: string;

beforeAll(async () => {
  const settings = { httpPort: "0", grpcPort: "off", respPort: "0", config: `${root}config/policies.yaml` };
  const reading = parseSettings({}, settings);
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: silentLog });
  port = new URL(daemon.addresses.resp[0]!).port;
});

afterAll(() => daemon.close());

/** Times differ from run to run, and versions of redis-cli in where they put quotes and blank lines. */
function withoutTimes(text: string): string {
  return text
    .replace(/(reset_after_ms"? => \(integer\) )\d+/, "$1(a while)")
    .replace(/"(\w+)" =>/g, "$1 =>")
    .replace(/\n+/g, "\n");
}

describe("docs/resp.md", () => {
  it("shows what redis-cli really prints", async () => {
    const sessions = [...page.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
      block.split(/^\$ /m).slice(1),
    );
    expect(sessions).toHaveLength(6);
    for (const session of sessions) {
      const [command = "", ...printed] = session.split("\n");
      const [program = "", ...words] = command.split(" ");
      expect(program).toBe("redis-cli");
      const args = ["--no-raw", ...words.map((word) => (word === "6380" ? port : word))];
      const { stdout } = await run(program, args).catch((error: { stdout: string }) => error);
      expect(withoutTimes(stdout), command).toBe(withoutTimes(printed.join("\n")));
    }
  });

  it("shows what the example in TypeScript really prints", async () => {
    const [, code = "", printed] = /```ts\n([\s\S]*?)```\n```text\n([\s\S]*?)```/.exec(page) ?? [];
    const args = ["-C", "source", "--input-type=module-typescript", "-e", code.replace("6380", port)];
    const { stdout } = await run(process.execPath, args, { cwd: root, env: {} });
    expect(stdout).toBe(printed);
  });

  it("names every command, every option and every error", () => {
    for (const { name } of commands) expect(page).toContain(`\`${name.toUpperCase()}`);
    for (const option of checkOptions) expect(page).toMatch(new RegExp(`^\\| \`${option}[ \`]`, "m"));
    for (const [code, prefix] of Object.entries(prefixByCode))
      expect(page).toMatch(new RegExp(`^\\| \`${prefix}\` \\| .*\`${code}\``, "m"));
  });

  it("says what each command needs", () => {
    const rows = [...page.matchAll(/^\| (role check|role operator|nothing) \| (.*) \|$/gm)];
    const listed = Object.fromEntries(
      rows.map(([, needs = "", names = ""]) => [needs, names.match(/[\w.]+/g)?.sort()]),
    );
    const names = (list: typeof commands): readonly string[] => list.map(({ name }) => name.toUpperCase()).sort();
    expect(listed).toEqual({
      "role check": names(commands.filter(({ needs }) => needs === "check")),
      "role operator": names(commands.filter(({ needs }) => needs === "operate")),
      nothing: names(commands.filter(({ beforeAuth }) => beforeAuth === true)),
    });
  });
});
