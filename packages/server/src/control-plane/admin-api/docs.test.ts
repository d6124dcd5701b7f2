import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adminRoutes as routes } from "../../boot/api-tables.ts";
import { leastRole } from "../../data-plane/access/roles.ts";
import { applyStored, createRoleActor, type StartedAdmin, startAdmin, tokenForRole } from "./testing/start-admin.ts";

const page = await readFile(fileURLToPath(new URL("../../../../../docs/admin.md", import.meta.url)), "utf8");

interface Example {
  readonly command: string;
  /** The answers shown on the page. */
  readonly answer: string | undefined;
}

/** Every curl command of the page, in order. */
const examples: readonly Example[] = [
  ...page.matchAll(/```sh\n(curl [\s\S]*?)```(?:[^`]*```json\n([\s\S]*?)```)?/g),
].map(([, command, answer]) => ({ command: command!, answer }));

/** `PUT /api/v1/policies/orders` from a command, as curl would request it. */
function askedBy(command: string): { method: string; path: string } {
  const [, path = ""] = /http:\/\/127\.0\.0\.1:8090([^\s'?]*)/.exec(command) ?? [];
  const [, method = / -d | --data-binary /.test(command) ? "POST" : "GET"] = /-X (\w+)/.exec(command) ?? [];
  return { method, path };
}

let admin: StartedAdmin;
let folder: string;

beforeAll(async () => {
  admin = await startAdmin();
  folder = await mkdtemp(join(tmpdir(), "sluice-docs-"));
});

afterAll(async () => {
  await admin.close();
  await rm(folder, { recursive: true });
});

/** Runs a command of the page in a shell, with real ids in place of placeholders. */
async function run(command: string): Promise<string> {
  const actor = createRoleActor("admin");
  const [rollout] = (await admin.control.rollouts.list(actor)).items;
  const token = (await admin.control.tokens.list(actor)).find(({ name }) => name === "ci");
  const [, kind, value] = /\/subjects\/(\w+)\/(\w+)/.exec(command) ?? [];
  const [, plan] = /\/plans\/(\w+)/.exec(command) ?? [];
  const version =
    kind !== undefined
      ? (await admin.control.subjects.get(actor, kind, value!)).version
      : plan !== undefined && command.includes("VERSION")
        ? (await admin.control.plans.get(actor, plan)).version
        : 0;
  const recordings = await admin.control.recordings.list(actor);
  const simulations = await admin.control.simulations.list(actor);
  const { generation } = await admin.store.readPulse();
  const filled = command
    .replaceAll('"GENERATION"', `"${generation}"`)
    .replaceAll('"VERSION"', `"${version}"`)
    .replaceAll("http://127.0.0.1:8090", admin.url)
    .replaceAll("/ROLLOUT", `/${rollout?.id}`)
    .replaceAll("/TOKEN_ID", `/${token?.id}`)
    .replaceAll("/RECORDING", `/${recordings.items[0]?.id}`)
    .replaceAll("/SIMULATION", `/${simulations[0]?.id}`)
    .replace(/^curl /, "curl --fail-with-body -sS ");
  const env = {
    PATH: process.env.PATH,
    TOKEN: tokenForRole("admin"),
    AUTH: `authorization: Bearer ${tokenForRole("admin")}`,
  };
  const { stdout } = await promisify(execFile)("sh", ["-c", filled], { cwd: folder, env }).catch(
    ({ stdout: told, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`${command}\n${stderr}${told}`);
    },
  );
  return stdout;
}

/** Times differ from run to run; everything else is as written. */
function withoutMoments(text: string): unknown {
  return JSON.parse(text, (key, part) => (key.endsWith("_ms") ? "(moment)" : part));
}

describe("docs/admin.md", () => {
  it("has examples that run one after another, and get the answers shown", async () => {
    for (const { command, answer } of examples) {
      const told = await run(command);
      if (answer !== undefined) expect(withoutMoments(told), command).toEqual(withoutMoments(answer));
      await applyStored(admin);
    }
  }, 120_000);

  it("has an example of every route", () => {
    const asked = examples.map(({ command }) => askedBy(command));
    const without = routes.filter(({ method, path }) => {
      const pattern = new RegExp(`^${path.replaceAll(/[.]/g, "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
      return !asked.some((one) => one.method === method && pattern.test(one.path));
    });
    expect(without.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  it("lists every route in its table, with the lowest role that may use it", () => {
    const rows = page.split("\n").filter((line) => line.startsWith("| [`"));
    for (const { method, path, needs } of routes) {
      const row = rows.find((line) => line.includes(`\`GET ${path}\``) || line.includes(`\`${method} ${path}\``));
      const exact = rows.find((line) => line.includes(`\`${method} ${path}\``)) ?? row;
      expect(exact, `${method} ${path}`).toBeDefined();
      expect(exact, `${method} ${path}`).toMatch(
        new RegExp(`${needs === "nothing" ? "none" : leastRole[needs]}[^|]*\\|$`),
      );
    }
  });

  it("names no path that does not exist", () => {
    const patterns = routes.map(({ path }) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`));
    for (const { command } of examples) {
      const { path } = askedBy(command);
      expect(
        patterns.some((pattern) => pattern.test(path)),
        command,
      ).toBe(true);
    }
  });
});
