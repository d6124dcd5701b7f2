import { createClient } from "@redis/client";
import { type ConnectionOptions, clientOptions } from "./connect/node-redis-connection.ts";
import { type Address, errorFrom, reconnectAfterMs } from "./connect/redis-connection.ts";
import type { RedisServers } from "./connect/redis-servers.ts";
import { within } from "./topology/within.ts";

/**
 * Messages among all processes that have the same channel open, on dedicated connections. Nothing is stored: a message
 * reaches those that listen when it is sent.
 */
export interface RedisChannel {
  readonly connected: boolean;
  /**
   * Sends a message as soon as there is a connection, to all listeners at that time, the sender included. Of several
   * that wait for a connection only the last is sent. Never throws.
   */
  send(message: string): void;
  close(): void;
}

export interface RedisChannelListener {
  onMessage(message: string): void;
  /** Messages arrive starting now; earlier ones may have been missed. */
  onConnected(): void;
  /** It reconnects automatically. */
  onLost(error: Error): void;
}

export interface RedisChannelOptions {
  /** How often the server is tested. Absent: every ten seconds. */
  readonly pingEveryMs?: number | undefined;
}

const answerWithinMs = 5_000;
const connectTimeoutMs = 2_000;

/** Connections to one server: a listening one cannot send anything else. */
interface Session {
  readonly sending: Client;
  close(): void;
}

/**
 * Opens a channel. In a cluster every node forwards messages to all others, so any of them will do. Sentinels are asked
 * for the primary, because replicas do not forward. A server that is lost, or does not answer, is left for the next
 * one.
 */
export function openRedisChannel(
  servers: RedisServers,
  channel: string,
  listener: RedisChannelListener,
  { pingEveryMs = 10_000 }: RedisChannelOptions = {},
): RedisChannel {
  let session: Session | undefined;
  let waiting: string | undefined;
  let attempts = 0;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;

  async function open(): Promise<void> {
    const opened: Client[] = [];
    const close = (): void => {
      for (const client of opened) if (client.isOpen) client.destroy();
    };
    let over = false;
    const fail = (error: unknown): void => {
      if (over || closed) return;
      over = true;
      session = undefined;
      close();
      listener.onLost(errorFrom(error));
      again();
    };
    try {
      const address = await findServer(servers, attempts);
      for (let i = 0; i < 2; i++) opened.push(createOne(address, servers, fail));
      const [listening, sending] = opened as [Client, Client];
      await Promise.all(opened.map(connectOne));
      await within(listening.subscribe(channel, listener.onMessage), answerWithinMs);
      if (over || closed) return close();
      session = { sending, close };
      attempts = 0;
      void watch([listening, sending], pingEveryMs, () => over || closed, fail);
      listener.onConnected();
      flush();
    } catch (error) {
      if (closed) close();
      fail(error);
    }
  }

  function again(): void {
    attempts += 1;
    timer = setTimeout(() => void open(), reconnectAfterMs(attempts));
    timer.unref();
  }

  function flush(): void {
    if (session === undefined || waiting === undefined) return;
    const message = waiting;
    waiting = undefined;
    // Lost connections are reported separately.
    session.sending.publish(channel, message).catch(() => undefined);
  }

  void open();
  return {
    get connected(): boolean {
      return session !== undefined;
    },
    send(message): void {
      waiting = message;
      flush();
    },
    close(): void {
      closed = true;
      clearTimeout(timer);
      session?.close();
      session = undefined;
    },
  };
}

type Client = ReturnType<typeof createOne>;

function createOne(address: Address, options: ConnectionOptions, onLost: (error: unknown) => void) {
  const { connectTimeoutMs: ms = connectTimeoutMs } = options;
  const client = createClient({
    ...clientOptions(address, { ...options, connectTimeoutMs: ms }),
    name: "sluice",
    RESP: 2,
    disableOfflineQueue: true,
  });
  client.on("error", onLost);
  client.on("end", () => onLost(new Error("the server closed the connection")));
  return client;
}

/** A network that swallows packets lets a connection open, and then answers nothing. */
async function connectOne(client: Client): Promise<void> {
  await within(client.connect(), connectTimeoutMs + answerWithinMs);
}

/** An open connection may be dead, and a mere listener would never find out. */
async function watch(
  clients: readonly Client[],
  everyMs: number,
  over: () => boolean,
  fail: (error: unknown) => void,
): Promise<void> {
  while (!over()) {
    await new Promise((resolve) => setTimeout(resolve, everyMs).unref());
    if (over()) return;
    try {
      await within(Promise.all(clients.map((client) => client.ping())), answerWithinMs);
    } catch (error) {
      return fail(error);
    }
  }
}

/** Where to connect to at this attempt. */
async function findServer(servers: RedisServers, attempt: number): Promise<Address> {
  const address = servers.addresses[attempt % servers.addresses.length]!;
  if (servers.kind !== "sentinel") return address;
  const { sentinelUsername: username, sentinelPassword: password, readSentinelPassword: readPassword } = servers;
  const { tls, connectTimeoutMs, masterName = "mymaster" } = servers;
  const client = createOne(address, { username, password, readPassword, tls, connectTimeoutMs }, () => undefined);
  try {
    await connectOne(client);
    const question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName];
    const reply: unknown = await within(client.sendCommand(question), answerWithinMs);
    if (!Array.isArray(reply)) throw new Error(`the Sentinel knows no primary ${masterName}`);
    return { kind: "tcp", host: String(reply[0]), port: Number(reply[1]) };
  } finally {
    if (client.isOpen) client.destroy();
  }
}
