import { parseRedisUrl, type RedisServers } from "@sluice/redis";
import { SluiceError } from "sluice";

/** Servers as `REDIS_CLUSTER_URL` names them. */
export interface RedisNodes {
  readonly servers: RedisServers;
  /** Whether one server is named without saying if it is a node of a cluster: that is found out by asking it. */
  readonly ofUnknownKind: boolean;
}

/**
 * Parses `host1:6379,host2:6379` or `redis://host1:6379,redis://host2:6379`, several nodes of a cluster; or one
 * address, whose server may be standalone. An address that states its kind (`redis+sentinel://`, `unix://`) is taken at
 * its word.
 */
export function parseRedisNodes(text: string): RedisNodes {
  const parts = text.split(/,\s*(?=[a-z][a-z+]*:\/\/)/i).map((part) => part.trim().replace(/,$/, ""));
  const [first, ...others] = parts.map(parsePart);
  if (others.length === 0) return first!;
  const all = [first!, ...others].map(({ servers }) => servers);
  const [{ username, password, tls }] = all as [RedisServers];
  for (const one of all) {
    if (one.kind !== "cluster")
      throw nodesError("names servers of different kinds; write nodes as host:port or redis://host:port");
    if (one.username !== username || one.password !== password)
      throw nodesError("has different users or passwords; nodes of a cluster share them");
    if ((one.tls === undefined) !== (tls === undefined)) throw nodesError("has nodes with TLS and nodes without");
  }
  const { database: _, ...common } = all[0]!;
  return { servers: { ...common, addresses: all.flatMap(({ addresses }) => addresses) }, ofUnknownKind: false };
}

function parsePart(text: string): RedisNodes {
  const [, scheme, rest = text] = /^([a-z]+):\/\/(.*)$/is.exec(text) ?? [];
  const plain = !text.includes("://") || scheme !== undefined;
  if (!plain || scheme === "unix") return { servers: parseRedisUrl(text), ofUnknownKind: false };
  const hosts = rest
    .split(",")
    .map((host) => host.trim())
    .join(",");
  if (hosts.replace(/^.*@/s, "").includes(","))
    return { servers: parseRedisUrl(`${scheme ?? "redis"}+cluster://${hosts}`), ofUnknownKind: false };
  // A cluster has no database number; a single server may have one.
  const servers = parseRedisUrl(`${scheme ?? "redis"}://${hosts}`);
  return { servers: { ...servers, kind: "cluster" }, ofUnknownKind: true };
}

function nodesError(message: string): SluiceError {
  return new SluiceError("invalid_request", `the addresses of the Redis servers ${message}`, [
    { path: ["servers"], message },
  ]);
}
