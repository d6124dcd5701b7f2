import type { RedisServers } from "@sluice/redis";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";
import { inspectServer } from "./inspect-server.ts";
import type { RedisPlan } from "./plan-counters.ts";
import { withTlsFiles } from "./read-redis-files.ts";

const askWithinMs = 1_000;

export interface PlacedServers {
  readonly servers: RedisServers;
  /** False if no server answered, so that a cluster is assumed. */
  readonly kindKnown: boolean;
}

/** The servers of a plan, with their certificates, and of the right kind if that can be found out at once. */
export async function placeServers({ servers, ofUnknownKind }: RedisPlan, settings: Settings): Promise<PlacedServers> {
  // A file that cannot be read is reported at once, and not by the first connection.
  for (const name of ["redisPasswordFile", "redisSentinelPasswordFile"] as const)
    await findPasswordFile(name, settings)?.read();
  if (!ofUnknownKind) return { servers: await withTlsFiles(servers, settings), kindKnown: true };
  const cluster = await withTlsFiles(asKind(servers, "cluster", servers), settings);
  const kind = await askKind(cluster);
  return { servers: asKind(cluster, kind ?? "cluster", servers), kindKnown: kind !== undefined };
}

/** Undefined if the server does not answer. */
export async function askKind(servers: RedisServers): Promise<"standalone" | "cluster" | undefined> {
  const facts = await inspectServer(servers.addresses[0]!, servers, askWithinMs);
  if (facts === undefined) return undefined;
  return facts.clustered ? "cluster" : "standalone";
}

/** A single server keeps the requested database; a cluster has only one. */
export function asKind(servers: RedisServers, kind: RedisServers["kind"], { database }: RedisServers): RedisServers {
  return { ...servers, kind, database: kind === "cluster" ? undefined : database };
}
