import { type createClient, RedisClient } from "@redis/client";
import {
  type Address,
  type Connect,
  type ConnectionListener,
  errorFrom,
  Reconnecting,
  type RedisArgument,
  type RedisConnection,
} from "./redis-connection.ts";

/** Who we are to the server, and how what is said stays between us. */
export interface ConnectionOptions {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database?: number | undefined;
  /** PEM texts; absent: no TLS. An empty object is TLS with the machine's own authorities. */
  readonly tls?: TlsOptions | undefined;
  readonly connectTimeoutMs?: number | undefined;
}

export interface TlsOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that the server's certificate must have. Absent: the host that is connected to. */
  readonly serverName?: string | undefined;
}

/** An idle connection is asked whether it is still there. */
const pingEveryMs = 30_000;

/** Connections by node-redis, the default. */
export function connectNodeRedis(options: ConnectionOptions = {}): Connect {
  return (address, listener) => new NodeRedisConnection(() => openClient(address, options), listener);
}

/** As much of a client of node-redis as is used here. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  readonly options?: { readonly socket?: object | undefined } | undefined;
  duplicate(overrides?: object): NodeRedisClient;
  connect(): Promise<unknown>;
  sendCommand(args: readonly RedisArgument[]): Promise<unknown>;
  destroy(): void;
  /** Its sockets keep no process alive. */
  unref?(): void;
  on(event: string, listener: (value: unknown) => void): unknown;
}

/**
 * Connections like those of a client of node-redis that an application has: with its credentials and its TLS. The client
 * itself is left alone, because by its own settings it may keep commands until it is connected.
 */
export function connectLikeNodeRedis(client: NodeRedisClient): Connect {
  const { socket } = client.options ?? {};
  return (address, listener) => {
    const overrides = {
      ...plainOptions,
      // Everything that the address says is in the other options as well, once the client was made.
      url: undefined,
      socket: { ...withoutPlace(socket), ...renderPlace(address), reconnectStrategy: false },
      clientSideCache: undefined,
      emitInvalidate: undefined,
      maintNotifications: "disabled",
      readonly: false,
    };
    return new NodeRedisConnection(() => client.duplicate(overrides), listener);
  };
}

class NodeRedisConnection implements RedisConnection {
  readonly #make: () => NodeRedisClient;
  readonly #listener: ConnectionListener;
  readonly #reconnecting = new Reconnecting(() => this.renew());
  #client: NodeRedisClient;
  #pinging: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(make: () => NodeRedisClient, listener: ConnectionListener) {
    this.#make = make;
    this.#listener = listener;
    this.#client = this.#open();
  }

  get ready(): boolean {
    return this.#client.isReady;
  }

  send(args: readonly RedisArgument[]): Promise<unknown> {
    return this.#client.sendCommand(args);
  }

  renew(): void {
    if (this.#closed) return;
    this.#end();
    this.#client = this.#open();
  }

  close(): void {
    this.#closed = true;
    this.#end();
  }

  #end(): void {
    this.#reconnecting.stop();
    clearTimeout(this.#pinging);
    try {
      // Also one that has ended: until then it keeps its credentials and stays among the clients that are measured.
      this.#client.destroy();
    } catch {
      // Some versions refuse to destroy what has ended.
    }
  }

  #open(): NodeRedisClient {
    const client = this.#make();
    const isOurs = (): boolean => client === this.#client && !this.#closed;
    // A client that is destroyed while it connects connects all the same, and then nobody would ever close it.
    client.on("connect", () => {
      if (!isOurs()) client.destroy();
    });
    client.on("ready", () => {
      if (!isOurs()) return;
      this.#reconnecting.succeeded();
      this.#pingLater();
      this.#listener.onReady();
    });
    client.on("error", (error) => {
      if (!isOurs()) return;
      if (!client.isReady) this.#reconnecting.later();
      this.#listener.onLost(errorFrom(error));
    });
    client.unref?.();
    // What goes wrong is heard of by the listener, and tried again later.
    client.connect().catch(() => undefined);
    return client;
  }

  /** node-redis can do this as well, with a timer that keeps a process alive. */
  #pingLater(): void {
    clearTimeout(this.#pinging);
    const client = this.#client;
    this.#pinging = setTimeout(() => {
      if (!client.isReady || client !== this.#client) return;
      // A connection that is lost is heard of by the listener.
      const answered = (): void => (client === this.#client ? this.#pingLater() : undefined);
      client.sendCommand(["PING"]).then(answered, answered);
    }, pingEveryMs);
    this.#pinging.unref();
  }
}

/** Of every client. */
const plainOptions = {
  name: "sluice",
  RESP: 2,
  // Nothing waits for a connection, and nothing that was sent is sent again.
  disableOfflineQueue: true,
  // Every call has a deadline of ours; a signal of the client's own for each costs five times the command.
  commandOptions: { timeout: 0 },
  pingInterval: 0,
} as const;

/**
 * node-redis makes a class of several hundred commands for every address that is not the last one's, which holds up the process
 * for some 20 ms each. One class will do, and is made with the first connection.
 */
const createFactory = () => RedisClient.factory({ RESP: plainOptions.RESP });
let createPlainClient: ReturnType<typeof createFactory> | undefined;

function openClient(address: Address, options: ConnectionOptions): NodeRedisClient {
  createPlainClient ??= createFactory();
  return createPlainClient({ ...clientOptions(address, options), ...plainOptions });
}

/** Where a client of node-redis connects to, and as whom. It does not connect again: its timer would keep a process alive. */
export function clientOptions(
  address: Address,
  { username, password, database, tls, connectTimeoutMs = 2000 }: ConnectionOptions,
): NonNullable<Parameters<typeof createClient>[0]> {
  const common = { reconnectStrategy: false as const, connectTimeout: connectTimeoutMs, keepAlive: true };
  const socket =
    address.kind === "unix"
      ? { ...common, path: address.path, tls: false as const }
      : tls === undefined
        ? { ...common, host: address.host, port: address.port, noDelay: true }
        : { ...common, host: address.host, port: address.port, noDelay: true, tls: true as const, ...renderTls(tls) };
  return {
    socket,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
  };
}

function renderPlace(address: Address): object {
  return address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
}

/** A path that is there at all, even if undefined, is taken for a place. */
function withoutPlace(socket: object = {}): object {
  return Object.fromEntries(Object.entries(socket).filter(([name]) => !["host", "port", "path"].includes(name)));
}

function renderTls({ ca, cert, key, serverName }: TlsOptions): Record<string, string> {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}
