import { connectNodeRedis } from "./connect/node-redis-connection.ts";
import type { Connect } from "./connect/redis-connection.ts";
import type { RedisServers } from "./connect/redis-servers.ts";
import { renewWhenOld } from "./connect/renew-when-old.ts";
import { renewWhenStuck } from "./connect/renew-when-stuck.ts";
import { cluster } from "./topology/cluster.ts";
import { sentinel } from "./topology/sentinel.ts";
import { standalone } from "./topology/standalone.ts";
import type { Topology, TopologyListener } from "./topology/topology.ts";

/** How long a server has to answer the client's greeting, on top of the time for connecting. */
const greetingMs = 1000;
const defaultConnectTimeoutMs = 2000;

export function openTopology(servers: RedisServers, listener: TopologyListener, maxAgeMs: number): Topology {
  const stuckAfterMs = (servers.connectTimeoutMs ?? defaultConnectTimeoutMs) + greetingMs;
  const renewing = (connect: Connect): Connect =>
    renewWhenStuck(renewWhenOld(connect, maxAgeMs, stuckAfterMs), stuckAfterMs);
  const connect = renewing(servers.connect ?? connectNodeRedis(servers));
  switch (servers.kind) {
    case "standalone":
      return standalone(servers.addresses[0]!, connect, listener);
    case "cluster":
      return cluster(servers.addresses, connect, listener);
    case "sentinel":
      return sentinel(
        {
          sentinels: servers.addresses,
          masterName: servers.masterName ?? "mymaster",
          connect,
          connectSentinel: renewing(
            servers.connectSentinel ??
              connectNodeRedis({
                username: servers.sentinelUsername,
                password: servers.sentinelPassword,
                readPassword: servers.readSentinelPassword,
                tls: servers.tls,
                connectTimeoutMs: servers.connectTimeoutMs,
              }),
          ),
        },
        listener,
      );
  }
}
