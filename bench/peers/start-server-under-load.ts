import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findFreePort } from "@sluice/test-servers";
import type { Installation } from "./install-peers.ts";
import { fewPerHour, hourlyLimit } from "./questions.ts";
import { type ProgramToStart, startProgram } from "./start-program.ts";

/** What is measured: Sluice and peers, each with the settings that the table of the page names. */
export type ServerName =
  | "sluice"
  | "sluice_leased"
  | "envoy_ratelimit"
  | "envoy_ratelimit_pipelined"
  | "gubernator"
  | "throttlecrab";

export interface ServerPorts {
  readonly grpc: number;
  readonly http: number;
  readonly resp: number;
}

export interface ServerUnderLoad {
  readonly name: ServerName;
  readonly pid: number;
  readonly ports: ServerPorts;
  stop(): Promise<void>;
}

/** What servers need to start. */
export interface World {
  readonly root: string;
  /** A folder for files that servers read. */
  readonly folder: string;
  readonly installation: Installation;
  /** The port of a Valkey, if counters are to be there. */
  readonly valkeyPort: number | undefined;
}

/** Undefined if the peer is not installed. */
export async function startServerUnderLoad(name: ServerName, world: World): Promise<ServerUnderLoad | undefined> {
  const ports = { grpc: await findFreePort(), http: await findFreePort(), resp: await findFreePort() };
  const program = await describe(name, world, ports);
  if (program === undefined) return undefined;
  const { pid, stop } = await startProgram(program);
  return { name, pid, ports, stop };
}

async function describe(name: ServerName, world: World, ports: ServerPorts): Promise<ProgramToStart | undefined> {
  switch (name) {
    case "sluice":
      return sluice(world, ports, "off");
    case "sluice_leased":
      return sluice(world, ports, "on");
    case "envoy_ratelimit":
      return envoyRatelimit(world, ports, "0s");
    case "envoy_ratelimit_pipelined":
      return envoyRatelimit(world, ports, "150us");
    case "gubernator":
      return gubernator(world, ports);
    case "throttlecrab":
      return throttlecrab(world, ports);
  }
}

/** The file that Envoy's own server reads, and Sluice too. */
const envoyFile = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: ${hourlyLimit} }
  - key: key
    rate_limit: { unit: hour, requests_per_unit: ${fewPerHour} }
`;

const sluiceFile = `policies:
  - { id: orders, match: { endpoint: /v1/orders }, limits: [{ by: [user], windows: [${hourlyLimit}/h] }] }
  - { id: keys, match: { endpoint: /v1/keys }, limits: [{ by: [user], windows: [${fewPerHour}/h] }] }
`;

/**
 * The compiled command. Its bound on the check rate is lifted, because the rate is measured; and it waits for counters as
 * long as Envoy's server does, so that nothing is decided without them.
 */
function sluice({ root, folder, valkeyPort }: World, ports: ServerPorts, leases: "on" | "off"): ProgramToStart {
  const policies = path.join(folder, "sluice");
  mkdirSync(policies, { recursive: true });
  writeFileSync(path.join(policies, "orders.yaml"), sluiceFile);
  writeFileSync(path.join(policies, "shop.yaml"), envoyFile);
  return {
    command: process.execPath,
    args: [path.join(root, "packages", "cli", "dist", "main.js"), "serve", "--config", policies],
    env: {
      SLUICE_HTTP_PORT: `${ports.http}`,
      SLUICE_GRPC_PORT: `${ports.grpc}`,
      SLUICE_RESP_PORT: `${ports.resp}`,
      SLUICE_MAX_CHECKS_PER_SECOND: "0",
      SLUICE_DEADLINE: "10s",
      ...(valkeyPort === undefined
        ? {}
        : { SLUICE_REDIS_URL: `redis://127.0.0.1:${valkeyPort}`, SLUICE_LEASES: leases }),
    },
    ports: [ports.http, ports.grpc, ports.resp],
  };
}

/** Without statistics, which cost it time. A pipeline window of 150 µs is what its documentation recommends. */
async function envoyRatelimit(
  { folder, installation, valkeyPort }: World,
  ports: ServerPorts,
  pipelineWindow: string,
): Promise<ProgramToStart | undefined> {
  const { envoy_ratelimit: peer } = installation.installed;
  if (peer === undefined || valkeyPort === undefined) return undefined;
  const config = path.join(folder, "envoy-ratelimit", "config");
  mkdirSync(config, { recursive: true });
  writeFileSync(path.join(config, "shop.yaml"), envoyFile);
  const debugPort = await findFreePort();
  return {
    command: peer.program,
    args: [],
    env: {
      HOST: "127.0.0.1",
      PORT: `${ports.http}`,
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: `${ports.grpc}`,
      DEBUG_HOST: "127.0.0.1",
      DEBUG_PORT: `${debugPort}`,
      USE_STATSD: "false",
      DISABLE_STATS: "true",
      RUNTIME_ROOT: path.dirname(config),
      RUNTIME_WATCH_ROOT: "false",
      REDIS_SOCKET_TYPE: "tcp",
      REDIS_URL: `127.0.0.1:${valkeyPort}`,
      REDIS_PIPELINE_WINDOW: pipelineWindow,
    },
    ports: [ports.grpc],
  };
}

/** One node that knows of no others. */
function gubernator({ installation }: World, ports: ServerPorts): ProgramToStart | undefined {
  const { gubernator: peer } = installation.installed;
  if (peer === undefined) return undefined;
  return {
    command: peer.program,
    args: [`127.0.0.1:${ports.grpc}`, `127.0.0.1:${ports.http}`],
    env: {},
    ports: [ports.grpc, ports.http],
  };
}

function throttlecrab({ installation }: World, ports: ServerPorts): ProgramToStart | undefined {
  const { throttlecrab: peer } = installation.installed;
  if (peer === undefined) return undefined;
  const listen = (transport: "grpc" | "http" | "redis", port: number): string[] => [
    `--${transport}`,
    `--${transport}-host=127.0.0.1`,
    `--${transport}-port=${port}`,
  ];
  return {
    command: peer.program,
    args: [
      ...listen("grpc", ports.grpc),
      ...listen("http", ports.http),
      ...listen("redis", ports.resp),
      "--log-level=error",
    ],
    env: {},
    ports: [ports.grpc, ports.http, ports.resp],
  };
}
