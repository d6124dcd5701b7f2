import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** One address in front of servers that come and go, as a load balancer on the level of TCP is. */
export interface Switchboard {
  /** `127.0.0.1:34567` */
  readonly address: string;
  /** New connections lead there; open ones stay. */
  connectTo(address: string): void;
  close(): Promise<void>;
}

export async function createSwitchboard(first: string): Promise<Switchboard> {
  let current = first;
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (incoming) => {
    const port = Number(current.slice(current.lastIndexOf(":") + 1));
    const outgoing = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.end();
      });
      one.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    connectTo(address): void {
      current = address;
    },
    async close(): Promise<void> {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
