import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { loopback } from "./find-free-port.ts";

/** What a server says to a statement instead of carrying it out. */
export interface PostgresReply {
  /** error: it fails. notice: it succeeds, with a notice. */
  readonly as: "error" | "notice";
  readonly severity: string;
  /** The SQLSTATE. */
  readonly code: string;
  readonly message: string;
}

export interface PostgresProxy {
  readonly port: number;
  /** How many connections were opened since the start. */
  readonly opened: number;
  /** Statements that it answered itself. */
  readonly answered: readonly string[];
  close(): Promise<void>;
}

/**
 * A proxy before a PostgreSQL that answers some statements itself, as another server of the same protocol does. It knows those that
 * are sent alone and without parameters, on connections without TLS.
 */
export async function createPostgresProxy(
  target: { readonly host: string; readonly port: number },
  answer: (statement: string) => PostgresReply | undefined,
): Promise<PostgresProxy> {
  const sockets = new Set<Socket>();
  const answered: string[] = [];
  let opened = 0;
  const server = createServer({ noDelay: true }, (client) => {
    opened += 1;
    const upstream = connect({ ...target, noDelay: true });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    upstream.on("data", (chunk) => client.write(chunk));
    client.on("data", (chunk) => {
      const statement = chunk[0] === simpleQuery ? chunk.toString("utf8", 5, chunk.length - 1) : undefined;
      const reply = statement === undefined ? undefined : answer(statement);
      if (statement === undefined || reply === undefined) upstream.write(chunk);
      else {
        answered.push(statement);
        client.write(encodeReply(reply, statement));
      }
    });
  });
  server.listen(0, loopback);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get opened(): number {
      return opened;
    },
    answered,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const simpleQuery = "Q".charCodeAt(0);

function encodeReply({ as, severity, code, message }: PostgresReply, statement: string): Buffer {
  const fields = Buffer.from(`S${severity}\0V${severity}\0C${code}\0M${message}\0\0`);
  const ready = encodeMessage("Z", Buffer.from("I"));
  if (as === "error") return Buffer.concat([encodeMessage("E", fields), ready]);
  const tag = Buffer.from(`${statement.split(" ")[0]?.toUpperCase()}\0`);
  return Buffer.concat([encodeMessage("N", fields), encodeMessage("C", tag), ready]);
}

function encodeMessage(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
