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

/** Our credentials, and how the connection is encrypted. */
export interface ConnectionOptions {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Reads the password, for each new connection. Used in place of `password`, for one that is rotated. */
  readonly readPassword?: (() => Promise<string>) | undefined;
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

/** How often an idle connection is tested. */
const pingEveryMs = 30_000;

/** Connections by node-redis, the default. */
export function connectNodeRedis(options: ConnectionOptions = {}): Connect {
  return (address, listener) => new NodeRedisConnection(() => openClient(address, options), listener);
}

/** The parts of a node-redis client that are used here. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  readonly options?: { readonly socket?: object | undefined } | undefined;
  duplicate(overrides?: object): NodeRedisClient;
  connect(): Promise<unknown>;
  sendCommand(args: readonly RedisArgument[]): Promise<unknown>;
  destroy(): void;
  /** Lets the process exit while its sockets are open. */
  unref?(): void;
  on(event: string, listener: (value: unknown) => void): unknown;
}

/**
 * Connections like those of an application's node-redis client: with its credentials and its TLS. The client itself is
 * left alone: its settings may make it queue commands until it is connected.
 */
export function connectLikeNodeRedis(client: NodeRedisClient): Connect {
  const { socket } = client.options ?? {};
  return (address, listener) => {
    const overrides = {
      ...plainOptions,
      // Everything in the address is in the other options as well, once the client was created.
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
      // Also if it has ended: until then it keeps its credentials and stays among the measured clients.
      this.#client.destroy();
    } catch {
      // Some versions refuse to destroy a client that has ended.
    }
  }

  #open(): NodeRedisClient {
    const client = this.#make();
    const isOurs = (): boolean => client === this.#client && !this.#closed;
    // A client destroyed while it connects still connects, and then nothing would ever close it.
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
    // The listener gets the error, and the connection is retried later.
    client.connect().catch(() => undefined);
    return client;
  }

  /** node-redis can do this as well, with a timer that keeps a process alive. */
  #pingLater(): void {
    clearTimeout(this.#pinging);
    const client = this.#client;
    this.#pinging = setTimeout(() => {
      if (!client.isReady || client !== this.#client) return;
      // The listener learns about a lost connection.
      const answered = (): void => (client === this.#client ? this.#pingLater() : undefined);
      client.sendCommand(["PING"]).then(answered, answered);
    }, pingEveryMs);
    this.#pinging.unref();
  }
}

/** For every client. */
const plainOptions = {
  name: "sluice",
  RESP: 2,
  // Nothing waits for a connection, and nothing that was sent is sent again.
  disableOfflineQueue: true,
  // Every call has our own deadline; an abort signal per command costs five times the command.
  commandOptions: { timeout: 0 },
  pingInterval: 0,
} as const;

/**
 * node-redis creates a class of several hundred commands whenever the address differs from the last one, which blocks
 * the process for some 20 ms each time. One class will do, created with the first connection.
 */
const createFactory = () => RedisClient.factory({ RESP: plainOptions.RESP });
let createPlainClient: ReturnType<typeof createFactory> | undefined;

function openClient(address: Address, options: ConnectionOptions): NodeRedisClient {
  createPlainClient ??= createFactory();
  return createPlainClient({ ...clientOptions(address, options), ...plainOptions });
}

/** Where a node-redis client connects to, and as whom. It does not reconnect: its timer would keep a process alive. */
export function clientOptions(
  address: Address,
  { username, password, readPassword, database, tls, connectTimeoutMs = 2000 }: ConnectionOptions,
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
    ...(password === undefined || readPassword !== undefined ? {} : { password }),
    ...(readPassword === undefined ? {} : { credentialsProvider: renderProvider(username, readPassword) }),
    ...(database === undefined ? {} : { database }),
  };
}

function renderProvider(username: string | undefined, readPassword: () => Promise<string>) {
  const credentials = async () => ({
    password: await readPassword(),
    ...(username === undefined ? {} : { username }),
  });
  return { type: "async-credentials-provider" as const, credentials };
}

function renderPlace(address: Address): object {
  return address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
}

/** A `path` key counts as a place even if it is undefined. */
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
