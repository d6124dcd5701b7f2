import {
  connectIoredis,
  connectIoredisSentinel,
  type IoredisClient,
  type IoredisCluster,
  isIoredisCluster,
} from "./ioredis-connection.ts";
import type { Address } from "./redis-connection.ts";
import type { RedisServers } from "./redis-servers.ts";

/**
 * The servers of an application's ioredis or iovalkey client, reached by connections like its own:
 *
 *     new RedisCounters({ servers: serversFromIoredis(client) })
 */
export function serversFromIoredis(client: IoredisClient | IoredisCluster): RedisServers {
  const connect = connectIoredis(client);
  if (isIoredisCluster(client)) return { kind: "cluster", addresses: findStartNodes(client), connect };
  const { host, port, path, sentinels, name, tls } = client.options;
  if (sentinels != null) {
    return {
      kind: "sentinel",
      addresses: sentinels.map((one) => tcp(one.host, one.port ?? sentinelPort)),
      masterName: name ?? undefined,
      connect,
      connectSentinel: connectIoredisSentinel(client),
    };
  }
  const address: Address = path == null ? tcp(host, port) : { kind: "unix", path };
  return { kind: "standalone", addresses: [address], connect, ...(tls === undefined ? {} : { tls: {} }) };
}

const sentinelPort = 26_379;

function tcp(host: string | null | undefined, port: number | string | null | undefined): Address {
  return { kind: "tcp", host: host ?? "127.0.0.1", port: Number(port ?? 6379) };
}

/** The nodes that the client was given, in any notation; or those that it has found, if DNS names them. */
function findStartNodes(cluster: IoredisCluster): readonly Address[] {
  const given: unknown = Reflect.get(cluster, "startupNodes");
  const addresses =
    Array.isArray(given) && cluster.options.useSRVRecords !== true
      ? given.map(addressOfNode)
      : cluster.nodes().map(({ options }) => tcp(options.host, options.port));
  if (addresses.length === 0)
    throw new Error("the cluster client knows no node yet; hand it over when it is connected");
  return addresses;
}

function addressOfNode(node: unknown): Address {
  if (typeof node === "number" || /^\d+$/.test(String(node))) return tcp(undefined, Number(node));
  if (typeof node === "string") {
    const { hostname, port } = new URL(/^\w+:\/\//.test(node) ? node : `redis://${node.replace(/^\/\//, "")}`);
    return tcp(hostname.replace(/^\[(.*)\]$/, "$1"), port === "" ? undefined : port);
  }
  const { host, port } = node as { readonly host?: string; readonly port?: number | string };
  return tcp(host, port);
}
