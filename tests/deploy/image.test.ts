import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { findFreePort, startServer, type TestServer } from "@sluice/test-servers";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { chartCases } from "../../scripts/chart-digest.mjs";
import { imagePackages } from "../../scripts/image-root.mjs";
import { installedClosure } from "../../scripts/installed-closure.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";
import type { Sluice } from "../restart/start-sluice.ts";
import { httpCaller, startTraffic } from "../restart/traffic.ts";
import { type Containers, createContainers, hardened } from "./containers.ts";

const tag = "localhost/sluice:test";
const megabyte = 1_000_000;
const patience = { timeout: 60_000, interval: 50 };
const policies =
  "policies: [{ id: p, limits: [{ by: [user], algorithm: fixed_window, windows: [1000000000 once] }], on_failure: closed }]\n";

let containers: Containers;
let redis: TestServer;
let archive: string;

beforeAll(async () => {
  containers = await createContainers();
  redis = await startServer({ flavor: "valkey" });
  archive = path.join(containers.folder, "sluice.tar");
  await writeFile(path.join(containers.folder, "policies.yaml"), policies);
  await containers.build(tag, "--archive", archive);
}, 240_000);

afterAll(async () => {
  await containers?.close();
  await redis?.close();
}, 60_000);

interface Container extends Pick<Sluice, "http" | "isReady"> {
  readonly id: string;
}

async function run(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Container> {
  const [httpPort, grpcPort] = [await findFreePort(), await findFreePort()];
  const all = { SLUICE_HOST: "127.0.0.1", SLUICE_HTTP_PORT: httpPort, SLUICE_GRPC_PORT: grpcPort, ...env };
  const variables = Object.entries(all).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const id = (await containers.podman("run", "--detach", ...hardened, ...args, ...variables, tag)).trim();
  const http = `http://127.0.0.1:${httpPort}`;
  const isReady = (): Promise<boolean> =>
    fetch(`${http}/readyz`, { headers: { connection: "close" } }).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect
    .poll(isReady, patience)
    .toBe(true)
    .catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await containers.podman("logs", id)}`);
    });
  return { id, http, isReady };
}

const inspect = async (id: string, field: string): Promise<string> =>
  (await containers.podman("inspect", "--format", `{{${field}}}`, id)).trim();

it("is small, belongs to no one, has labels and a bill of materials, and no shell", async () => {
  const [image] = JSON.parse(await containers.podman("image", "inspect", tag)) as [
    { Size: number; User: string; Labels: Record<string, string>; Config: { Cmd: string[]; StopSignal: string } },
  ];
  const { version } = JSON.parse(await readFile(path.join(repositoryRoot, "packages/cli/package.json"), "utf8"));
  expect(image.Size).toBeLessThan(200 * megabyte);
  expect((await stat(archive)).size).toBeLessThan(75 * megabyte);
  expect(image).toMatchObject({
    User: "65532:65532",
    Labels: { "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0" },
    Config: { Cmd: ["serve"], StopSignal: "SIGTERM" },
  });
  const id = (await containers.podman("create", tag)).trim();
  const mounted = (await containers.podman("mount", id)).trim();
  const { stdout } = await promisify(execFile)("find", [mounted, "-type", "f", "-printf", "%m %P\n"]);
  const files = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" ", 2) as [string, string]);
  const programs = files.filter(([mode, file]) => /[1357]/.test(mode) && !/\.so(\.|$)|node_modules/.test(file));
  expect(programs.map(([, file]) => file).sort()).toEqual(["usr/local/bin/node", "usr/local/bin/sluice"]);
  expect(files.filter(([mode]) => Number.parseInt(mode, 8) & 0o6000)).toEqual([]);
  expect(files.filter(([, file]) => /\.(map|d\.ts)$|\.test\.|\/testing\//.test(file))).toEqual([]);
  const sbom = JSON.parse(await readFile(path.join(mounted, "usr/share/sluice/sbom.cdx.json"), "utf8"));
  const purls = sbom.components.map(({ purl }: { purl: string }) => purl);
  for (const { name, version: own } of installedClosure(imagePackages))
    expect(purls).toContain(`pkg:npm/${name.replace("@", "%40")}@${own}`);
  expect(purls).toEqual(expect.arrayContaining([expect.stringMatching(/^pkg:deb\/debian\/libc6@/)]));
});

it("serves without privileges on a file system that it cannot write, and checks its own health", async () => {
  const { id, http } = await run({}, "--memory", "256m");
  const healthy = await containers.podman("exec", id, "/usr/local/bin/sluice", "healthcheck");
  expect(healthy).toBe("ready\n");
  await expect(containers.podman("exec", id, "/bin/sh", "-c", "true")).rejects.toThrow();
  const answer = await fetch(`${http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { user: "u" } }),
  });
  expect(answer.status).toBe(200);
  expect(await containers.podman("healthcheck", "run", id)).not.toContain("unhealthy");
  await containers.podman("kill", id);
});

it("refuses to listen beyond the container without TLS or tokens, and says what to set", async () => {
  const failed = containers.podman("run", "--rm", ...hardened, tag);
  await expect(failed).rejects.toThrow("SLUICE_ALLOW_INSECURE");
});

it("drains under traffic without a failed call", async () => {
  const env = { SLUICE_REDIS_URL: redis.url, SLUICE_DRAIN: "2s", SLUICE_DEADLINE: "10s" };
  const mount = ["--volume", `${containers.folder}/policies.yaml:/etc/sluice/policies.yaml:ro`];
  const config = { ...env, RATE_LIMIT_CONFIG: "/etc/sluice/policies.yaml" };
  const [first, second] = await Promise.all([run(config, ...mount), run(config, ...mount)]);
  const caller = httpCaller("drained");
  caller.use([first, second] as unknown as readonly Sluice[]);
  const traffic = startTraffic(caller, 4);
  await vi.waitFor(() => expect(traffic.tally.allowed).toBeGreaterThan(200), patience);
  const stopped = containers.podman("stop", "--time", "30", first.id);
  await expect.poll(first.isReady, { timeout: 30_000, interval: 10 }).toBe(false);
  caller.use([second] as unknown as readonly Sluice[]);
  await stopped;
  const { allowed } = traffic.tally;
  await vi.waitFor(() => expect(traffic.tally.allowed).toBeGreaterThan(allowed + 100), patience);
  await traffic.stop();
  await caller.close();
  expect(traffic.tally.failures).toEqual([]);
  expect(await inspect(first.id, ".State.ExitCode")).toBe("0");
  await containers.podman("kill", second.id);
}, 120_000);

it("stays within its memory, however many subjects strangers invent", async () => {
  const windows = Array.from({ length: 10 }, (_, index) => `${index + 5}/${index + 1}h`);
  const many = `policies: [{ id: many, limits: [{ by: [user], windows: [${windows}] }] }]\n`;
  await writeFile(path.join(containers.folder, "many.yaml"), many);
  const mount = ["--volume", `${containers.folder}/many.yaml:/etc/sluice/policies.yaml:ro`];
  const memory = ["--memory", "192m", "--memory-swap", "192m"];
  const { id, http } = await run({ RATE_LIMIT_CONFIG: "/etc/sluice/policies.yaml" }, ...memory, ...mount);
  const headers = { "content-type": "application/json" };
  const readMetric = async (name: string): Promise<number> => {
    const page = await (await fetch(`${http}/metrics`)).text();
    return Number(new RegExp(`^sluice_counters_${name} (\\d+)`, "m").exec(page)?.[1]);
  };
  const flood = async (begin: number): Promise<void> => {
    const checks = Array.from({ length: 500 }, (_, index) => ({ dimensions: { user: `stranger-${begin + index}` } }));
    const sent = await fetch(`${http}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
    await sent.text();
  };
  let subjects = 0;
  while (subjects < 2_000_000 && (await readMetric("evicted_total")) === 0) {
    await Promise.all(Array.from({ length: 8 }, (_, index) => flood(subjects + 500 * index)));
    subjects += 4_000;
  }
  expect(await readMetric("evicted_total")).toBeGreaterThan(0);
  // A quarter of the container's memory, because no setting says otherwise.
  expect(await readMetric("bytes")).toBeGreaterThan(24 * 1024 * 1024);
  expect(await readMetric("bytes")).toBeLessThanOrEqual(48 * 1024 * 1024);
  expect(await inspect(id, ".State.Running")).toBe("true");
  expect(await inspect(id, ".State.OOMKilled")).toBe("false");
  await containers.podman("kill", id);
}, 180_000);

it("runs as the Helm chart deploys it", async () => {
  const rendered = await readFile(path.join(chartCases, "kube.rendered.yaml"), "utf8");
  const manifests = parseAllDocuments(rendered).map((document) => document.toJS());
  const deployment = manifests.find(({ kind }) => kind === "Deployment");
  const { spec } = deployment.spec.template;
  const [container] = spec.containers;
  const [httpPort, grpcPort] = [await findFreePort(), await findFreePort()];
  // The machine's network, with ports that no other test has.
  const ports = { SLUICE_HTTP_PORT: httpPort, SLUICE_GRPC_PORT: grpcPort };
  const own = Object.entries(ports).map(([name, value]) => ({ name, value: String(value) }));
  container.env = [...container.env.filter(({ name }: { name: string }) => !(name in ports)), ...own];
  container.ports = undefined;
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) container[probe] = undefined;
  spec.hostNetwork = true;
  spec.topologySpreadConstraints = undefined;
  const configMap = manifests.find(({ kind }) => kind === "ConfigMap");
  const file = path.join(containers.folder, "kube.yaml");
  await writeFile(file, [configMap, deployment].map((one) => stringify(one)).join("---\n"));
  await containers.podman("tag", tag, "localhost/sluice:kube");
  await containers.podman("play", "kube", file);
  const url = `http://127.0.0.1:${httpPort}`;
  const count = (): Promise<number> =>
    fetch(`${url}/v1/policies`).then(
      async (answer) => ((await answer.json()) as { policies: unknown[] }).policies.length,
      () => 0,
    );
  await expect.poll(count, patience).toBe(1);
  await containers.podman("play", "kube", "--down", file);
  expect(await count()).toBe(0);
}, 120_000);
