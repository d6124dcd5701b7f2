import { hostAddress } from "sluice/internal";
import { type ConsoleOptions, createAdminServer } from "../control-plane/admin-api/server.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { LiveStreams } from "../control-plane/live/live-streams.ts";
import { limitOwnApi, type OwnLimits } from "../data-plane/access/limit-own-api.ts";
import { countChecks } from "../data-plane/service/count-checks.ts";
import type { Service } from "../data-plane/service/service.ts";
import { createDoor, type Door, type DoorOptions, type Endpoint } from "../data-plane/transports/door.ts";
import { createGrpcServer } from "../data-plane/transports/grpc/server.ts";
import { HeldBytes, maxHeldBytes } from "../data-plane/transports/held-bytes.ts";
import { createHttpServer } from "../data-plane/transports/http/server.ts";
import { createRespServer } from "../data-plane/transports/resp/server.ts";
import { createTls } from "../data-plane/transports/tls.ts";
import type { Transport } from "../data-plane/transports/transport.ts";
import { Turns } from "../data-plane/transports/turns.ts";
import { type Protocol, protocols } from "../protocol.ts";
import type { Settings } from "../settings/settings.ts";
import { adminRoutes, grpcMethods, httpRoutes } from "./api-tables.ts";

/** Where each protocol is served, as URLs; empty if it is off. */
export type Addresses = Readonly<Record<Protocol, readonly string[]>>;

/** Every protocol that is served, each with its transport and its door. */
export interface Transports {
  listen(): Promise<Addresses>;
  /** Open connections. */
  readonly connections: Readonly<Record<Protocol, number>>;
  /** Reads certificates again. */
  reload(): Promise<void>;
  /** Closes the doors and drains the transports; resolves with how many connections were cut off. */
  close(withinMs: number): Promise<number>;
}

interface OpenTransport {
  readonly protocol: Protocol;
  readonly transport: Transport;
  readonly door: Door;
}

export interface TransportsOptions {
  /** Undefined without a policy store. */
  readonly control?: ControlPlane | undefined;
  /** What the admin port has for browsers. */
  readonly console?: ConsoleOptions | undefined;
  /** Undefined without a control plane. */
  readonly live?: LiveStreams | undefined;
  /** Whether unix socket paths are shared with other processes of this server. */
  readonly sharesPaths?: boolean | undefined;
}

const logEveryMs = 60_000;

/** The share of all connections that one address may have by default: the rest is left to others. */
const usualShareOfAddress = 0.75;

export async function createTransports(
  service: Service,
  settings: Settings,
  { sharesPaths, control, console, live }: TransportsOptions = {},
): Promise<Transports> {
  const { maxConnections } = settings;
  const maxPerAddress = settings.maxConnectionsPerAddress ?? Math.ceil(maxConnections * usualShareOfAddress);
  const onTurnedAway = createTurnedAwayLog(service, { maxConnections, maxPerAddress });
  const open: OpenTransport[] = [];
  const closeHeld = (protocol: Protocol): void => onTurnedAway(protocol, "held_bytes", {});
  const shared = { turns: new Turns(), held: new HeldBytes(maxHeldBytes, closeHeld) };
  const ownLimits = limitOwnApi();
  const tls = await createTls({ settings, log: service.log });
  for (const protocol of protocols) {
    const endpoints = listEndpoints(protocol, settings);
    if (endpoints.length === 0) continue;
    const transport = await createTransport(protocol, service, settings, {
      control,
      console,
      live,
      ownLimits,
      shared,
    }).catch((error: unknown) => {
      tls?.close();
      throw error;
    });
    open.push({
      protocol,
      transport,
      door: createDoor({
        protocol,
        endpoints,
        transport,
        maxConnections,
        maxPerAddress,
        onTurnedAway,
        tls,
        sharesPaths,
      }),
    });
  }

  async function close(withinMs: number): Promise<number> {
    tls?.close();
    await Promise.all(open.map(({ door }) => door.close()));
    const cut = await Promise.all(open.map(({ transport }) => transport.drain(withinMs)));
    return cut.reduce((sum, one) => sum + one, 0);
  }

  return {
    async listen(): Promise<Addresses> {
      const addresses: Record<Protocol, readonly string[]> = { http: [], grpc: [], resp: [], admin: [] };
      try {
        for (const { protocol, door } of open)
          addresses[protocol] = (await door.listen()).map((address) => renderUrl(protocol, address, tls !== undefined));
      } catch (error) {
        await close(0);
        throw error;
      }
      return addresses;
    },
    get connections(): Readonly<Record<Protocol, number>> {
      const of = (protocol: Protocol): number => open.find((one) => one.protocol === protocol)?.door.connections ?? 0;
      return { http: of("http"), grpc: of("grpc"), resp: of("resp"), admin: of("admin") };
    },
    async reload(): Promise<void> {
      await tls?.reload();
    },
    close,
  };
}

interface TransportParts {
  readonly control: ControlPlane | undefined;
  readonly console: ConsoleOptions | undefined;
  readonly live: LiveStreams | undefined;
  readonly ownLimits: OwnLimits;
  readonly shared: { readonly turns: Turns; readonly held: HeldBytes };
}

async function createTransport(
  protocol: Protocol,
  service: Service,
  settings: Settings,
  { control, console, live, ownLimits, shared }: TransportParts,
): Promise<Transport> {
  switch (protocol) {
    case "http":
      return createHttpServer(
        {
          ...service,
          decide: countChecks(service.decide, service.metrics.checkCount("http")),
          idempotencyHeader: settings.idempotencyHeader,
          random: settings.retryJitter ? Math.random : undefined,
          envoyHeaders: settings.envoyHeaders,
          authorizeDimensions: settings.authorizeDimensions,
        },
        { routes: httpRoutes, ...shared },
      );
    case "resp":
      return createRespServer(service, shared);
    case "grpc":
      return createGrpcServer(
        {
          ...service,
          envoyHeaders: settings.envoyHeaders,
          idempotencyHeader: settings.idempotencyHeader,
          ownLimits,
        },
        {
          methods: grpcMethods(control),
          engine: settings.grpcEngine,
          maxAgeMs: settings.grpcMaxConnectionAgeMs === 0 ? Infinity : settings.grpcMaxConnectionAgeMs,
          turns: shared.turns,
        },
      );
    case "admin":
      if (control === undefined || live === undefined) throw new Error("the admin port needs a control plane");
      return createAdminServer({ ...service, control, live }, { routes: adminRoutes, ownLimits, console, ...shared });
  }
}

/** Where the settings want a protocol to be served. */
export function listEndpoints(protocol: Protocol, settings: Settings): readonly Endpoint[] {
  const host = hostAddress(settings.host);
  const { port, socket } = {
    http: { port: settings.httpPort, socket: settings.httpSocket },
    grpc: { port: settings.grpcPort, socket: settings.grpcSocket },
    resp: { port: settings.respPort, socket: settings.respSocket },
    admin: { port: settings.store === undefined ? undefined : settings.adminPort, socket: undefined },
  }[protocol];
  const endpoints: Endpoint[] = [];
  if (port !== undefined) endpoints.push({ kind: "port", host, port });
  if (socket !== undefined) endpoints.push({ kind: "socket", path: socket });
  return endpoints;
}

const schemes: Readonly<Record<Protocol, readonly [clear: string, secure: string]>> = {
  http: ["http", "https"],
  grpc: ["grpc", "grpcs"],
  resp: ["redis", "rediss"],
  admin: ["http", "https"],
};

/** `http://127.0.0.1:8080`, `grpcs://…`, `redis://…`, `unix:/run/sluice.sock`. */
function renderUrl(protocol: Protocol, address: string, secure: boolean): string {
  return address.startsWith("unix:") ? address : `${schemes[protocol][secure ? 1 : 0]}://${address}`;
}

/**
 * Counts every connection that is turned away. Logs those that concern operators once a minute; failed TLS handshakes,
 * which any stranger on a network can cause, a few times a minute at level debug.
 */
function createTurnedAwayLog(
  { metrics, log }: Service,
  bounds: { readonly maxConnections: number; readonly maxPerAddress: number },
): DoorOptions["onTurnedAway"] {
  const mayTell = {
    too_many: perMinute(1),
    too_many_of_address: perMinute(1),
    held_bytes: perMinute(1),
    client_name: perMinute(1),
    tls: perMinute(10),
  };
  return (protocol, why, { address, reason }) => {
    metrics.countTurnedAway(protocol, why);
    const connections = mayTell[why]();
    if (connections === 0) return;
    const fields = { protocol, why, connections, address, reason };
    if (why === "too_many" || why === "too_many_of_address") log.warn("connection.refused", { ...fields, ...bounds });
    else if (why === "held_bytes") log.warn("connection.closed_for_memory", { ...fields, maxHeldBytes });
    else if (why === "client_name") log.warn("tls.client_refused", fields);
    else log.debug("tls.handshake_failed", fields);
  };
}

/** How many times it was called since it last returned more than 0; 0 after `most` calls in this minute. */
function perMinute(most: number): () => number {
  let asked = 0;
  let reported = 0;
  let beganMs = -Infinity;
  return () => {
    asked += 1;
    const nowMs = performance.now();
    if (nowMs - beganMs >= logEveryMs) {
      beganMs = nowMs;
      reported = 0;
    }
    if (reported >= most) return 0;
    reported += 1;
    const since = asked;
    asked = 0;
    return since;
  };
}
