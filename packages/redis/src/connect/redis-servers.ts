import { SluiceError } from "sluice";
import { aFunction, anObject, aText, checkOptions, numberFrom, type OptionForms, oneOf } from "sluice/internal";
import type { ConnectionOptions, TlsOptions } from "./node-redis-connection.ts";
import { type Address, type Connect, renderAddress } from "./redis-connection.ts";

/** Servers, and how to reach them. */
export interface RedisServers extends ConnectionOptions {
  readonly kind: "standalone" | "sentinel" | "cluster";
  /** The server; any Sentinels; or any nodes of the cluster. */
  readonly addresses: readonly Address[];
  /** Sentinel: the Sentinels' name for the primary. */
  readonly masterName?: string | undefined;
  /** Sentinel: our credentials for the Sentinels themselves. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  /** The same as `readPassword`, for the Sentinels. */
  readonly readSentinelPassword?: (() => Promise<string>) | undefined;
  /** Opens connections another way, such as through an ioredis client; see `connectIoredis`. */
  readonly connect?: Connect | undefined;
  /** Sentinel: the same for connections to the Sentinels. */
  readonly connectSentinel?: Connect | undefined;
}

const defaultPort = 6379;
const sentinelPort = 26_379;

/**
 * Parses an address:
 *
 *     redis://user:password@host:6379/0         rediss://…                with TLS
 *     unix:///run/valkey.sock                                             a socket on this machine
 *     redis+sentinel://host1:26379,host2/name   rediss+sentinel://…       the primary `name`, as Sentinels know it; a
 *                                                                         database after it: /name/0
 *     redis+cluster://host1:6379,host2          rediss+cluster://…        a cluster, by any of its nodes
 */
export function parseRedisUrl(text: string): RedisServers {
  const unix = /^unix:\/\/(?:([^@/]*)@)?(\/[^?#]+)$/.exec(text);
  if (unix !== null) {
    return { kind: "standalone", addresses: [{ kind: "unix", path: decode(unix[2]!) }], ...parseCredentials(unix[1]) };
  }
  const found = /^(rediss?|valkeys?)(\+sentinel|\+cluster)?:\/\/(?:([^@]*)@)?([^/?#@]+)(?:\/([^?#]*))?$/.exec(text);
  if (found === null) throw addressError("is not an address that is understood; write it as redis://host:6379");
  const [, scheme, topology, user, hosts, path = ""] = found;
  const kind = topology === "+sentinel" ? "sentinel" : topology === "+cluster" ? "cluster" : "standalone";
  const addresses = hosts!
    .split(",")
    .map((host) => parseAddress(host, kind === "sentinel" ? sentinelPort : defaultPort));
  const tls: TlsOptions | undefined = scheme === "rediss" || scheme === "valkeys" ? {} : undefined;
  if (kind === "standalone" && addresses.length > 1)
    throw addressError("names several hosts; write redis+cluster:// or redis+sentinel:// for more than one");
  const [, masterName, sentinelDatabase] = /^([^/]+)(?:\/(\d{1,5})?)?$/.exec(path) ?? [];
  if (kind === "sentinel" && masterName === undefined)
    throw addressError("names no primary; write its name in the Sentinels after the hosts: redis+sentinel://host/name");
  if (kind === "cluster" && path !== "" && path !== "0") throw addressError("names a database; a cluster has only 0");
  if (kind === "standalone" && !/^(\d{1,5})?$/.test(path)) throw addressError("has no database number after the host");
  const database = kind === "standalone" ? path : kind === "sentinel" ? sentinelDatabase : undefined;
  return {
    kind,
    addresses,
    ...parseCredentials(user),
    ...(tls === undefined ? {} : { tls }),
    ...(kind === "sentinel" ? { masterName: decode(masterName!) } : {}),
    ...(database === undefined || database === "" ? {} : { database: Number(database) }),
  };
}

export function serversFrom(servers: string | RedisServers): RedisServers {
  if (typeof servers === "string") return parseRedisUrl(servers);
  checkOptions(servers, serverForms, { name: "servers", code: "invalid_request" });
  if (servers.kind === undefined || servers.addresses === undefined)
    throw addressError("must be a text such as redis://127.0.0.1:6379, or an object with kind and addresses");
  return servers;
}

const serverForms: OptionForms<RedisServers> = {
  kind: oneOf(["standalone", "sentinel", "cluster"]),
  addresses: {
    holds: (value) => Array.isArray(value) && value.length > 0 && value.every(isAddress),
    wanted: 'a list of addresses such as { kind: "tcp", host: "127.0.0.1", port: 6379 }',
  },
  masterName: aText,
  username: aText,
  password: { ...aText, secret: true },
  readPassword: aFunction,
  sentinelUsername: aText,
  sentinelPassword: { ...aText, secret: true },
  readSentinelPassword: aFunction,
  database: numberFrom(0),
  tls: anObject,
  connectTimeoutMs: numberFrom(1),
  connect: aFunction,
  connectSentinel: aFunction,
};

function isAddress(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { kind, host, port, path } = value as Readonly<Record<string, unknown>>;
  return kind === "unix" ? typeof path === "string" : typeof host === "string" && typeof port === "number";
}

/** For logs: the addresses, never the credentials. */
export function renderServers({ kind, addresses, masterName, tls }: RedisServers): string {
  const scheme = `${tls === undefined ? "redis" : "rediss"}${kind === "standalone" ? "" : `+${kind}`}`;
  const [first] = addresses;
  if (first?.kind === "unix") return `unix://${first.path}`;
  const hosts = addresses.map(renderAddress).join(",");
  return `${scheme}://${hosts}${masterName === undefined ? "" : `/${masterName}`}`;
}

function parseAddress(text: string, port: number): Address {
  const found = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?$/.exec(text);
  if (found === null || Number(found[2] ?? port) > 65_535 || Number(found[2] ?? port) === 0)
    throw addressError("has a host that is not host, host:port or [ipv6]:port");
  return { kind: "tcp", host: found[1]!.replace(/^\[(.*)\]$/, "$1"), port: Number(found[2] ?? port) };
}

function parseCredentials(user: string | undefined): Pick<ConnectionOptions, "username" | "password"> {
  if (user === undefined || user === "") return {};
  const [name, ...rest] = user.split(":");
  const password = rest.length === 0 ? undefined : decode(rest.join(":"));
  return { ...(name === "" ? {} : { username: decode(name!) }), ...(password === undefined ? {} : { password }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw addressError("has a % that is not followed by two hexadecimal digits; write % itself as %25");
  }
}

/** The address stays out of the message: it may contain a password. */
function addressError(message: string): SluiceError {
  return new SluiceError("invalid_request", `the address of the Redis servers ${message}`, [
    { path: ["servers"], message },
  ]);
}
