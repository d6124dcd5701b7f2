import {
  type Address,
  type Connect,
  type ConnectionListener,
  errorFrom,
  Reconnecting,
  type RedisArgument,
  type RedisConnection,
} from "./redis-connection.ts";

/** The parts of a `Redis` of ioredis or iovalkey that are used here. */
export interface IoredisClient {
  readonly status: string;
  readonly options: IoredisOptions;
  /** The socket, once it is connected. */
  readonly stream?: { unref?(): unknown } | undefined;
  duplicate(override?: object): IoredisClient;
  call(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: (value: unknown) => void): unknown;
}

/** The parts of a `Cluster` of ioredis or iovalkey that are used here. */
export interface IoredisCluster {
  readonly isCluster: boolean;
  readonly options: {
    readonly natMap?: NatMap | null | undefined;
    readonly useSRVRecords?: boolean | undefined;
    readonly redisOptions?: object | undefined;
  };
  nodes(): IoredisClient[];
  once(event: string, listener: (value: unknown) => void): unknown;
}

export interface IoredisOptions {
  readonly host?: string | null | undefined;
  readonly port?: number | null | undefined;
  readonly path?: string | null | undefined;
  readonly tls?: object | undefined;
  readonly sentinels?:
    | readonly { readonly host?: string | undefined; readonly port?: number | undefined }[]
    | null
    | undefined;
  readonly name?: string | null | undefined;
  readonly sentinelUsername?: string | null | undefined;
  readonly sentinelPassword?: string | null | undefined;
  readonly sentinelTLS?: object | undefined;
  readonly enableTLSForSentinelMode?: boolean | undefined;
  readonly natMap?: NatMap | null | undefined;
}

/** Where servers that call themselves `host:port` can actually be reached. */
type NatMap = Readonly<Record<string, Place>> | ((key: string) => Place | null | undefined);

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Connections like those of an application's ioredis or iovalkey client: with its credentials and its TLS. The client
 * itself is left alone: its settings may make it queue commands until it is connected, and resend what was sent before,
 * which would charge twice. A cluster's client lends its settings as soon as it has found a node.
 */
export function connectIoredis(client: IoredisClient | IoredisCluster): Connect {
  const { natMap } = client.options;
  const lender = findLender(client);
  return (address, listener) =>
    new IoredisConnection(lender, (lent) => ({ ...serverOptions(lent.options), ...where(address, natMap) }), listener);
}

/** The same for its Sentinels, which may need other credentials than servers do. */
export function connectIoredisSentinel(client: IoredisClient): Connect {
  const { sentinelUsername = null, sentinelPassword = null, sentinelTLS, natMap } = client.options;
  const options = {
    ...direct,
    username: sentinelUsername,
    password: sentinelPassword,
    tls: sentinelTLS,
    db: 0,
  };
  return (address, listener) =>
    new IoredisConnection(findLender(client), () => ({ ...options, ...where(address, natMap) }), listener);
}

/** To one server, whatever named it: nothing waits for a connection, nothing is sent twice, and replies are plain. */
const direct = {
  sentinels: null,
  name: null,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // The first loss of the connection rejects everything in flight.
  maxRetriesPerRequest: 0,
  reconnectOnError: null,
  // Its timer would keep a process alive.
  retryStrategy: () => null,
  lazyConnect: false,
  // Every call has our own deadline, and is a batch already.
  commandTimeout: undefined,
  enableAutoPipelining: false,
  // A dropped connection need not say goodbye.
  disconnectTimeout: 0,
  keyPrefix: "",
  stringNumbers: false,
  protocol: 2,
  replyMapping: "legacy",
  readOnly: false,
  monitor: false,
  connectionName: "sluice",
};

function serverOptions({ sentinels, tls, enableTLSForSentinelMode }: IoredisOptions): object {
  // Behind Sentinels, ioredis uses TLS to servers only if two options say so.
  return sentinels == null || enableTLSForSentinelMode === true ? { ...direct, tls } : { ...direct, tls: undefined };
}

function where(address: Address, natMap: NatMap | null | undefined): object {
  if (address.kind === "unix") return { path: address.path };
  const key = `${address.host}:${address.port}`;
  const mapped = typeof natMap === "function" ? natMap(key) : natMap?.[key];
  const { host, port } = mapped ?? address;
  return { host, port, path: undefined };
}

/** The client to duplicate: the given one, or any node of a cluster, which has none until it begins to connect. */
function findLender(client: IoredisClient | IoredisCluster): Promise<IoredisClient> {
  if (!isIoredisCluster(client)) return Promise.resolve(client);
  const [node] = client.nodes();
  if (node !== undefined) return Promise.resolve(node);
  return new Promise((resolve) => client.once("+node", (first) => resolve(first as IoredisClient)));
}

export function isIoredisCluster(client: IoredisClient | IoredisCluster): client is IoredisCluster {
  return "isCluster" in client && client.isCluster;
}

class IoredisConnection implements RedisConnection {
  readonly #optionsFor: (lender: IoredisClient) => object;
  readonly #listener: ConnectionListener;
  readonly #reconnecting = new Reconnecting(() => this.renew());
  #lender: IoredisClient | undefined;
  #client: IoredisClient | undefined;
  #closed = false;

  constructor(
    lender: Promise<IoredisClient>,
    optionsFor: (lender: IoredisClient) => object,
    listener: ConnectionListener,
  ) {
    this.#optionsFor = optionsFor;
    this.#listener = listener;
    lender
      .then((lent) => {
        this.#lender = lent;
        this.#open();
      })
      .catch((error: unknown) => listener.onLost(errorFrom(error)));
  }

  get ready(): boolean {
    return this.#client?.status === "ready";
  }

  async send([command, ...args]: readonly RedisArgument[]): Promise<unknown> {
    if (this.#client === undefined) throw new Error("there is no connection yet");
    try {
      return await this.#client.call(String(command), args);
    } catch (error) {
      throw withoutCommand(error);
    }
  }

  renew(): void {
    this.#reconnecting.stop();
    this.#client?.disconnect();
    this.#open();
  }

  close(): void {
    this.#closed = true;
    this.#reconnecting.stop();
    this.#client?.disconnect();
  }

  #open(): void {
    if (this.#closed || this.#lender === undefined) return;
    const client = this.#lender.duplicate(this.#optionsFor(this.#lender));
    this.#client = client;
    let reported = false;
    const tell = (error: Error): void => {
      reported = true;
      if (client === this.#client && !this.#closed) this.#listener.onLost(error);
    };
    client.on("connect", () => client.stream?.unref?.());
    client.on("ready", () => {
      reported = false;
      if (client !== this.#client || this.#closed) return;
      this.#reconnecting.succeeded();
      this.#listener.onReady();
    });
    client.on("error", (error) => tell(withoutCommand(error)));
    // A server that shuts down in an orderly fashion leaves no error behind.
    client.on("close", () => {
      if (!reported) tell(new Error("the connection was closed"));
      reported = false;
      if (client === this.#client && !this.#closed) this.#reconnecting.later();
    });
  }
}

/**
 * ioredis attaches the failed command to its errors, arguments and all: passwords and subjects, for any log to print.
 */
function withoutCommand(error: unknown): Error {
  const plain = errorFrom(error);
  Reflect.deleteProperty(plain, "command");
  return plain;
}
