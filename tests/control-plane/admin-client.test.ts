import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type AdminClient, createAdminClient } from "@sluice/client/admin";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findExample } from "../repository/readme-example.ts";
import { repositoryRoot } from "../repository/source-tree.ts";

let folder: string;
let daemon: Daemon;
let url: string;
let token: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-admin-client-"));
  const store = `sqlite:${join(folder, "store.db")}`;
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", adminPort: "0", store });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  url = daemon.addresses.admin[0]!;
  token = daemon.firstToken!.token;
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

describe("docs/admin-client.md", () => {
  it("has an example that does what the page says, on a real server", async () => {
    const { code, output } = findExample(await readFile(join(repositoryRoot, "docs/admin-client.md"), "utf8"));
    const args = ["-C", "source", "--input-type=module-typescript", "-e", code];
    const env = { SLUICE_ADMIN_URL: url, SLUICE_TOKEN: token };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot, env });
    expect(stdout).toBe(output);
  });

  it("lists every method", async () => {
    const page = await readFile(join(repositoryRoot, "docs/admin-client.md"), "utf8");
    const admin = createAdminClient({ server: url });
    for (const [noun, operations] of Object.entries(admin).filter(([, value]) => typeof value === "object")) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${noun}\` |`));
      const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(operations)).slice(1);
      expect(row?.match(/`\w+`/g)?.slice(1), noun).toEqual(methods.map((name) => `\`${name}\``));
    }
  });
});

/** Every method once; an `ID` stands for what a path names. */
function callEach(admin: AdminClient): readonly Promise<unknown>[] {
  const subject = { dimension: "ID", value: "ID" };
  const limit = { policy: "p", windows: ["1/s"] };
  return [
    ...[admin.policies.list().toArray(), admin.policies.get("ID"), admin.policies.create({ id: "ID" })],
    ...[admin.policies.put("ID", {}), admin.policies.delete("ID"), admin.policies.validate({})],
    ...[admin.policies.versions("ID").toArray(), admin.policies.version("ID", 7), admin.policies.diff("ID")],
    ...[admin.policies.revert("ID", 1), admin.policies.explain({ dimensions: { user: "u" } })],
    ...[admin.rollouts.list().toArray(), admin.rollouts.get("ID"), admin.rollouts.minutes("ID")],
    ...[
      admin.rollouts.advance("ID"),
      admin.rollouts.pause("ID"),
      admin.rollouts.resume("ID"),
      admin.rollouts.finish("ID"),
    ],
    ...[
      admin.policies.disabled(),
      admin.policies.disable("ID", { why: "w" }),
      admin.policies.enable("ID"),
      admin.subjects.block(subject, { forMs: 1_000 }, { why: "w" }),
      admin.subjects.unblock(subject),
    ],
    ...[admin.plans.list().toArray(), admin.plans.get("ID"), admin.plans.put("ID", []), admin.plans.delete("ID")],
    admin.rollouts.rollBack("ID"),
    ...[admin.subjects.list("ID").toArray(), admin.subjects.get(subject), admin.subjects.usage(subject)],
    ...[admin.subjects.delete(subject), admin.subjects.setTier(subject, "t"), admin.subjects.deleteTier(subject)],
    ...[admin.subjects.setLimit(subject, limit), admin.subjects.deleteLimit(subject, limit)],
    ...[admin.subjects.setOverride(subject, { ...limit, forMs: 1_000 }), admin.subjects.deleteOverride(subject, limit)],
    admin.subjects.reset(subject),
    ...[admin.killSwitch.get(), admin.killSwitch.on("open", { why: "w" }), admin.killSwitch.off()],
    ...[
      admin.audit.list().toArray(),
      admin.usage.list().toArray(),
      admin.usage.events(),
      admin.denials.list().toArray(),
      admin.tokens.list(),
      admin.tokens.make({ name: "n", role: "viewer" }),
    ],
    ...[
      admin.tokens.revoke("ID"),
      admin.nodes.list(),
      admin.nodes.status(),
      admin.nodes.hotKeys(),
      admin.configuration.export(),
    ],
    ...[
      admin.policies.summaries().toArray(),
      admin.usage.top({ dimension: "tenant" }),
      admin.subjects.find("a").toArray(),
    ],
    ...[admin.session.get(), admin.session.makeCode()],
    ...[admin.recordings.list(), admin.recordings.get("ID"), admin.recordings.start()],
    ...[admin.recordings.stop("ID"), admin.recordings.delete("ID"), admin.simulations.list()],
    admin.simulations.create({ source: { log: "x" }, candidate: { file: "x" } }),
    ...[admin.simulations.get("ID"), admin.simulations.delete("ID")],
    ...[admin.configuration.plan("policies: []"), admin.configuration.import("policies: []")],
  ];
}

/** What only a browser needs: it signs in and out with a cookie, and reads events. */
const ofBrowsers: ReadonlySet<string> = new Set([
  ...["POST /api/v1/session", "DELETE /api/v1/session"],
  ...["overview", "decisions", "changes"].map((topic) => `GET /api/v1/live/${topic}`),
]);

describe("the admin client", () => {
  it("has a method for every operation of the admin API, and no other", async () => {
    const called: string[] = [];
    const server = createServer((request, response) => {
      const path = request.url!.split("?", 1)[0]!.replace(/\/versions\/7$/, "/versions/ID");
      called.push(`${request.method} ${path}`);
      const isExport = path.endsWith("/export");
      response.setHeader("content-type", isExport ? "application/yaml" : "application/json");
      response.end(isExport ? "policies: []" : '{"items":[]}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await Promise.all(callEach(createAdminClient({ server: `http://127.0.0.1:${port}` })));
    server.closeAllConnections();
    server.close();

    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const native = Object.entries(paths).filter(([path]) => /^\/api\/v1\/(?!rules|users)/.test(path));
    const operations = native.flatMap(([path, item]) =>
      Object.keys(item)
        .filter((method) => /^(get|put|post|delete)$/.test(method))
        .map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "ID")}`),
    );
    const ofPrograms = operations.filter((operation) => !ofBrowsers.has(operation));
    expect(called.toSorted()).toEqual(ofPrograms.toSorted());
  });

  it("plans, imports, pages and refuses like the server that it asks", async () => {
    const admin = createAdminClient({ server: url, token });
    const text = (id: string, limit: string): string =>
      `policies:\n  - { id: ${id}, match: { endpoint: /${id} }, limits: [{ by: [ip], windows: [${limit}] }] }\n`;
    const files = [
      { file: "a.yaml", text: text("a", "1/s") },
      { file: "b.yaml", text: text("b", "2/s") },
    ];
    const plan = await admin.configuration.plan(files);
    expect(plan.policies).toMatchObject([
      { policy: "a", action: "create", version: 0, document: { id: "a" }, diff: expect.stringContaining("+id: a") },
      { policy: "b", action: "create" },
    ]);
    await admin.configuration.import(files, { expected: plan.generation });
    const pages = admin.policies.list().pages({ limit: 1 });
    expect((await pages.next()).value?.items).toHaveLength(1);
    await pages.return();
    const bad = [...files.slice(0, 1), { file: "b.yaml", text: text("b", "2/x") }];
    await expect(admin.configuration.plan(bad)).rejects.toMatchObject({
      status: 400,
      code: "invalid_policies",
      problem: { problems: [{ file: "b.yaml", line: 2 }] },
    });
    const again = await admin.configuration.plan(text("a", "9/s"), { mode: "replace" });
    expect(again.policies.map(({ policy, action, version }) => [policy, action, version])).toEqual(
      expect.arrayContaining([
        ["a", "change", 1],
        ["b", "delete", 1],
      ]),
    );
    await expect(admin.configuration.import(text("a", "9/s"))).rejects.toMatchObject({ code: "version_conflict" });
    const viewer = await admin.tokens.make({ name: "looks", role: "viewer" });
    const looking = createAdminClient({ server: url, token: viewer.token.token });
    await expect
      .poll(() =>
        looking.configuration.plan(files).then(
          ({ policies }) => policies.length,
          () => 0,
        ),
      )
      .toBe(2);
    await expect(looking.configuration.import(files)).rejects.toMatchObject({ code: "permission_denied" });
  });
});
