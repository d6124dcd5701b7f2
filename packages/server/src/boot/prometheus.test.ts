import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startPrometheus, startServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const examples = fileURLToPath(new URL("../../../../examples/prometheus", import.meta.url));
const log = { debug() {}, info() {}, warn() {}, error() {} };
const policies = `
policies:
  - { id: strict, match: { endpoint: /strict }, limits: [{ by: [user], windows: [{ limit: 1, per: 1h, name: hourly }] }] }
  - { id: shadowed, match: { domain: "späti" }, limits: [{ windows: [5/s, 10/m] }], mode: shadow }
`;

let folder: string;
let inMemory: Daemon;
let onServers: Daemon;
let closing: (() => Promise<unknown>)[];

async function start(env: Readonly<Record<string, string>>): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  const flags = { httpPort: "0", grpcPort: "off", config, policySnapshot: join(folder, "snapshot.json") };
  const reading = parseSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", ...env }, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({ settings: reading.settings, log, processMetrics: true });
  closing.push(() => daemon.close());
  return daemon;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-prometheus-"));
  closing = [() => rm(folder, { recursive: true, force: true })];
  await writeFile(join(folder, "policies.yaml"), policies);
  const server = await startServer({ flavor: "valkey" });
  closing.push(() => server.close());
  inMemory = await start({});
  onServers = await start({ SLUICE_REDIS_URL: server.url, SLUICE_DEADLINE: "5s" });
  for (const daemon of [inMemory, onServers]) {
    for (const dimensions of [{ endpoint: "/strict", user: "u" }, { endpoint: "/strict", user: "u" }, { user: "v" }])
      await ask(daemon, { dimensions });
    await ask(daemon, { domain: "späti" });
    await ask(daemon, { dimensions: {}, preview: true });
    await ask(daemon, { policies: ["nowhere"] });
  }
}, 60_000);

afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

async function ask({ url }: Daemon, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  await (await fetch(`${url}/v1/check`, { method: "POST", headers, body: JSON.stringify(body) })).text();
}

const page = async ({ url }: Daemon): Promise<string> => (await fetch(`${url}/metrics`)).text();

async function promtool(args: readonly string[], input = ""): Promise<{ code: number; output: string }> {
  const env = { PATH: `${process.env.PATH}${delimiter}/usr/bin` };
  const child = spawn("promtool", args, { cwd: examples, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

describe("promtool", () => {
  it("finds nothing to complain of in the metrics of a server, with counters in memory and on servers", async () => {
    for (const daemon of [inMemory, onServers]) {
      const text = await page(daemon);
      expect(text.match(/^# TYPE sluice_/gm)!.length).toBeGreaterThan(30);
      expect(await promtool(["check", "metrics"], text)).toEqual({ code: 0, output: "" });
    }
  });

  it("finds something to complain of in bad ones, so that its silence means something", async () => {
    const bad = "# HELP sluice_things_total Things.\n# TYPE sluice_things_total gauge\nsluice_things_total 1\n";
    expect(await promtool(["check", "metrics"], bad)).toMatchObject({ code: 3 });
  });

  it("reads the alerts and the configuration next to them, and each alert does what it says", async () => {
    expect(await promtool(["check", "rules", "alerts.yaml"])).toMatchObject({ code: 0 });
    expect(await promtool(["check", "config", "prometheus.yaml"])).toMatchObject({ code: 0 });
    expect(await promtool(["test", "rules", "alerts.test.yaml"])).toMatchObject({ code: 0 });
  });
});

describe("Prometheus", () => {
  it("scrapes a server, and its alerts stay silent", async () => {
    const targets = { sluice: inMemory.url.replace("http://", ""), shared: onServers.url.replace("http://", "") };
    const prometheus = await startPrometheus({ targets, rules: [join(examples, "alerts.yaml")] });
    closing.push(() => prometheus.close());
    const value = async (expression: string): Promise<number | undefined> =>
      [...(await prometheus.query(expression)).values()][0];
    const soon = { timeout: 30_000, interval: 100 };
    for (const job of ["sluice", "shared"]) {
      await expect.poll(() => value(`up{job="${job}"}`), soon).toBe(1);
      const denied = `sluice_checks_total{job="${job}",policy="strict",version="1",allowed="false"}`;
      await expect.poll(() => value(denied), soon).toBe(1);
      expect(await value(`sluice_limiting_window_total{job="${job}",name="hourly",allowed="false"}`)).toBe(1);
      expect(await value(`sluice_policies{job="${job}",domain="späti"}`)).toBe(1);
      expect(
        await value(`histogram_quantile(1, sum by (le) (sluice_check_duration_seconds_bucket{job="${job}"}))`),
      ).toBeGreaterThan(0);
    }
    expect(await value('sum(sluice_redis_call_duration_seconds_count{job="shared"})')).toBeGreaterThan(0);
    expect(await value('sluice_redis_ready{job="shared"}')).toBe(1);
    const firing = await prometheus.query('ALERTS{alertstate="firing"}');
    expect([...firing.keys()]).toEqual([]);
    const rules = (await (await fetch(`${prometheus.url}/api/v1/rules`)).json()) as {
      data: { groups: { rules: { health: string; name: string }[] }[] };
    };
    const unhealthy = rules.data.groups.flatMap((group) => group.rules.filter(({ health }) => health === "err"));
    expect(unhealthy).toEqual([]);
  }, 60_000);
});
