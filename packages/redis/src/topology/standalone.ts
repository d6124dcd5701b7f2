import { type Address, type Connect, renderAddress } from "../connect/redis-connection.ts";
import type { Shard, Topology, TopologyListener } from "./topology.ts";

/** One server, which holds everything. */
export function standalone(address: Address, connect: Connect, listener: TopologyListener): Topology {
  const name = renderAddress(address);
  const connection = connect(address, {
    onReady: () => listener.onConnected(name),
    onLost: (error) => listener.onDisconnected(name, error),
  });
  const shard: Shard = {
    name,
    get ready() {
      return connection.ready;
    },
    send: (_slot, args) => connection.send(args),
    renew: () => connection.renew(),
  };
  return {
    clustered: false,
    shards: [shard],
    findShard: () => shard,
    suspect: () => undefined,
    close: () => connection.close(),
  };
}
