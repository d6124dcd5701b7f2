import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { createCertificates, findFreePort, startServer } from "@sluice/test-servers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type HealthcheckOptions, healthcheck } from "./healthcheck.ts";

let folder: string;
let closing: (() => Promise<unknown>)[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-health-"));
  closing = [() => rm(folder, { recursive: true, force: true })];
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

async function serve(env: Readonly<Record<string, string>>): Promise<Daemon> {
  const reading = parseSettings({ SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "off", ...env });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({
    settings: reading.settings,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  closing.push(() => daemon.close());
  return daemon;
}

async function ask(
  options: HealthcheckOptions,
  env: Readonly<Record<string, string>> = {},
): Promise<readonly [number, string]> {
  let out = "";
  const code = await healthcheck(options, { env, terminal: { stdout: { write: (text) => (out += text) } } });
  return [code, out];
}

it("asks the server that runs with the same variables, and needs no token", async () => {
  const socket = join(folder, "http.sock");
  const tokens = join(folder, "tokens.yaml");
  const { url } = await serve({ SLUICE_HTTP_SOCKET: socket });
  expect(await ask({}, { SLUICE_HTTP_PORT: new URL(url).port, SLUICE_HOST: "0.0.0.0" })).toEqual([0, "ready\n"]);
  expect(await ask({}, { SLUICE_HTTP_SOCKET: socket, SLUICE_HTTP_PORT: "off" })).toEqual([0, "ready\n"]);
  expect(await ask({ live: true, socket })).toEqual([0, "live\n"]);
  expect(await ask({ server: url }, { SLUICE_HTTP_SOCKET: tokens })).toEqual([0, "ready\n"]);
});

it("speaks TLS where the server does: with any certificate on this machine, and else with a trusted one", async () => {
  const certificates = await createCertificates();
  closing.push(() => certificates.close());
  const { cert, key, ca } = certificates;
  const { url } = await serve({ SLUICE_TLS_CERT: cert, SLUICE_TLS_KEY: key });
  expect(await ask({}, { SLUICE_HTTP_PORT: new URL(url).port, SLUICE_TLS_CERT: cert })).toEqual([0, "ready\n"]);
  expect(await ask({ server: url, ca })).toEqual([0, "ready\n"]);
  const other = await createCertificates();
  closing.push(() => other.close());
  expect(await ask({ server: url, ca: other.ca })).toEqual([1, expect.stringContaining("is not trusted")]);
});

it("tells a server that cannot reach its counters from a healthy one only if it is strict", async () => {
  const counters = await startServer({ flavor: "valkey" });
  closing.push(() => counters.close());
  const { url: server } = await serve({ SLUICE_REDIS_URL: counters.url });
  // A server listens before it has reached its counters.
  await expect.poll(() => ask({ server, strict: true })).toEqual([0, "ready\n"]);
  await counters.close();
  await expect.poll(() => ask({ server, strict: true })).toEqual([1, expect.stringMatching(/^unready: /)]);
  expect(await ask({ server })).toEqual([0, expect.stringMatching(/^degraded: /)]);
});

it("fails where nothing answers, something else does, or none in time", async () => {
  const port = await findFreePort();
  expect(await ask({ server: `http://127.0.0.1:${port}` })).toEqual([1, expect.stringContaining("refused")]);
  expect(await ask({ socket: join(folder, "none.sock") })).toEqual([1, expect.stringContaining("none.sock")]);
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  closing.push(async () => silent.close());
  await new Promise((resolve) => silent.once("listening", resolve));
  const { port: other } = silent.address() as { port: number };
  expect(await ask({ server: `http://127.0.0.1:${other}`, timeout: "100ms" })).toEqual([
    1,
    expect.stringContaining("none within 0.1 s"),
  ]);
});

it.each<[HealthcheckOptions, Record<string, string>, string]>([
  [{ server: "http://a", socket: "/b" }, {}, "--socket"],
  [{ live: true, strict: true }, {}, "--strict"],
  [{}, { SLUICE_HTTP_PORT: "off" }, "SLUICE_HTTP_PORT is off"],
  [{}, { SLUICE_HTTP_PORT: "0" }, "SLUICE_HTTP_PORT is 0"],
  [{ timeout: "soon" }, {}, "--timeout"],
])("refuses %j with %j, and names %s", async (options, env, named) => {
  await expect(ask(options, env)).rejects.toThrow(named);
});
