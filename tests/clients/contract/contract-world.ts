import { createHash, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLogger, type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { createCertificates, type TestCertificates } from "@sluice/test-servers";
import type { Target } from "./contract-client.ts";
import type { GrpcEngine } from "./grpc-engines.ts";

/** How much `bulk` admits of each user, for good: what is left says exactly what was charged. */
export const bulkLimit = 1_000_000;

const policies = `
policies:
  - id: few
    limits: [{ by: [user], windows: 2/h }]
  - id: bulk
    domain: bulk
    limits: [{ by: [user], algorithm: fixed_window, windows: [${bulkLimit} once] }]
`;

/** For questions of Envoy. */
const envoyPolicies = `
domain: shop
descriptors:
  - key: tenant
    rate_limit: { per: never, requests_per_unit: 2 }
  - key: reader
    descriptors:
      - key: path
        value: /downloads
        rate_limit: { per: never, requests_per_unit: 1 }
  - key: crowd
    rate_limit: { per: never, requests_per_unit: 100 }
`;

/** A server of one engine. */
export interface ContractServer {
  readonly target: Target;
  /** The same server by its unix socket. */
  readonly socket: Target;
  readonly daemon: Daemon;
  /** What `bulk` has charged a user. */
  charged(user: string): Promise<number>;
  /** The value of a metric; 0 if it has none yet. */
  metric(series: string): Promise<number>;
  /** As after SIGTERM. */
  drain(): Promise<void>;
}

/** All that cases need: servers in a few shapes, and names that were not used before. */
export interface ContractWorld {
  readonly engine: GrpcEngine;
  /** Everyone may ask. */
  readonly open: ContractServer;
  /** Only callers with a token may ask. */
  readonly guarded: ContractServer;
  readonly tokens: { readonly check: string; readonly viewer: string };
  /** With TLS. */
  readonly tls: ContractServer;
  /** With TLS, for clients that show a certificate. */
  readonly mutual: ContractServer;
  readonly certificates: TestCertificates;
  /** One more open server, which the case may drain. `drain` is how long it serves on while it says that it stops: `3s`. */
  start(options?: { readonly drain: string }): Promise<ContractServer>;
  close(): Promise<void>;
}

/** A name that was not used before. */
export function newName(): string {
  return `name-${randomUUID()}`;
}

export async function openContractWorld(engine: GrpcEngine): Promise<ContractWorld> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-contract-"));
  const config = path.join(folder, "policies");
  const certificates = await createCertificates();
  const servers: ContractServer[] = [];
  let sockets = 0;
  const tokens = { check: "token-that-checks-and-is-long-enough", viewer: "token-that-only-reads-and-is-long" };

  async function start(settings: Readonly<Record<string, string>> = {}): Promise<ContractServer> {
    sockets += 1;
    const grpcSocket = path.join(folder, `${sockets}.sock`);
    const server = await startContractServer({ config, grpcSocket, ...engine.settings, ...settings });
    servers.push(server);
    return server;
  }

  await mkdir(config);
  await writeFile(path.join(config, "policies.yaml"), policies);
  await writeFile(path.join(config, "shop.yaml"), envoyPolicies);
  const tokenFile = path.join(folder, "tokens.yaml");
  await writeFile(tokenFile, renderTokens(tokens));
  const tlsSettings = { tlsCert: certificates.cert, tlsKey: certificates.key };
  const open = await start();
  const guarded = await start({ tokens: tokenFile });
  const tls = await start(tlsSettings);
  const mutual = await start({ ...tlsSettings, tlsClientCa: certificates.ca });
  const { ca } = certificates;
  return {
    engine,
    open,
    guarded,
    tokens,
    tls: { ...tls, target: { ...tls.target, tls: { ca } } },
    mutual: { ...mutual, target: { ...mutual.target, tls: { ca } } },
    certificates,
    start: ({ drain } = { drain: "0s" }) => start({ drainMs: drain }),
    async close(): Promise<void> {
      await Promise.all(servers.map((server) => server.drain()));
      await certificates.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function renderTokens(tokens: Readonly<Record<string, string>>): string {
  const entries = Object.entries(tokens).map(([role, token]) => {
    const sha256 = createHash("sha256").update(token).digest("hex");
    return `  - { name: ${role}, role: ${role}, sha256: ${sha256} }\n`;
  });
  return `tokens:\n${entries.join("")}`;
}

async function startContractServer(flags: Readonly<Record<string, string>>): Promise<ContractServer> {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", ...flags });
  if (reading.kind !== "settings") throw new Error(JSON.stringify(reading));
  const { stdout, stderr } = process;
  const log = createLogger({ level: "silent", format: "text", stdout, stderr });
  const daemon = await startDaemon({ settings: reading.settings, log });
  const address = daemon.addresses.grpc.find((one) => !one.startsWith("unix:"))!.replace(/^grpcs?:\/\//, "");
  return {
    target: { address },
    socket: { address: `unix:${flags.grpcSocket}` },
    daemon,
    async charged(user): Promise<number> {
      const { remaining = 0 } = await daemon.limiter.peek({ domain: "bulk", dimensions: { user } });
      return bulkLimit - remaining;
    },
    async metric(series): Promise<number> {
      const text = await (await fetch(`${daemon.url}/metrics`)).text();
      const line = text.split("\n").find((one) => one.startsWith(`${series} `));
      return Number(line?.slice(series.length + 1) ?? 0);
    },
    drain: () => daemon.close(),
  };
}
