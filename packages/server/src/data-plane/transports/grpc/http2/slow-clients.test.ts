import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Turns } from "../../turns.ts";
import { answerHeaders } from "./answer-blocks.ts";
import { Connection } from "./connection.ts";
import { type ConnectionLimits, defaultLimits } from "./connection-limits.ts";
import { Flag, FrameType, maxWindow } from "./frames.ts";
import { fullBacklogBytes } from "./output.ts";
import { frame, RawClient, requestBlock, uint32 } from "./testing/raw-client.ts";

/** Connections whose clients read slowly: times are handed in, and so are the answers. */

const patience = { timeout: 30_000, interval: 10 };
const minuteMs = 60_000;
let server: Server;
let socket: Socket;
let connection: Connection;
let client: RawClient;
let heldBytes: number;
/** What the next request is answered with. */
let answer: Buffer;

async function open(limits: Partial<ConnectionLimits>): Promise<void> {
  server = createServer((accepted) => {
    socket = accepted;
    socket.on("error", () => {});
    connection = new Connection({
      socket,
      limits: { ...defaultLimits, ...limits },
      turns: new Turns(),
      flushLater: (one) => setImmediate(() => one.flush()),
      createHost: () => ({
        request(stream): void {
          stream.sendHeaders(answerHeaders, false);
          stream.sendData(answer);
          stream.sendEnd();
        },
        owe(): void {},
        hold(bytes): void {
          heldBytes += bytes;
        },
        failed(): void {},
        crashed(): void {},
        closed(): void {},
      }),
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = await RawClient.open(
    (server.address() as AddressInfo).port,
    Buffer.concat([Buffer.from([0, 4]), uint32(maxWindow)]),
  );
  client.send(frame(FrameType.windowUpdate, 0, 0, uint32(maxWindow - 65_535)));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

let lastId: number;

/** Asks for an answer of so many bytes, and waits until it has left the stream. */
async function ask(bytes: number): Promise<void> {
  lastId += 2;
  answer = Buffer.alloc(bytes);
  client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, lastId, requestBlock("/any")));
  const { bytesWritten } = socket;
  while (socket.bytesWritten < bytesWritten + Math.min(bytes, 1)) await turn();
  for (let i = 0; i < 5; i++) await turn();
}

/** Lets the client stop reading, and fills what the kernel holds for it. */
async function fillKernel(): Promise<void> {
  await ask(1);
  client.socket.pause();
  while (socket.writableLength === 0) await ask(50_000);
}

beforeEach(() => {
  heldBytes = 0;
  lastId = -1;
});

afterEach(() => {
  client.destroy();
  socket.destroy();
  server.close();
});

describe("a client that reads slowly", () => {
  it("gets its last answers when the connection is closed, however long they take", async () => {
    await open({ lingerMs: 0, lastCallsMs: 0 });
    await fillKernel();
    await ask(500_000);
    const asked = lastId;
    connection.leave();
    connection.tick(performance.now() + 1_000);
    expect([socket.writableEnded, socket.writableLength > 400_000]).toEqual([true, true]);
    for (let i = 0; i < 20; i++) await turn();
    client.socket.resume();
    await expect.poll(() => client.closed, patience).toBe(true);
    expect([client.answer(asked).bytes, client.answer(asked).ended]).toEqual([500_000, true]);
  });

  it("is not taken for dead because its answer to PING is not read", async () => {
    await open({ unreadMs: 60 * minuteMs });
    await fillKernel();
    await ask(2 * fullBacklogBytes);
    const nowMs = performance.now();
    connection.tick(nowMs + 2 * minuteMs);
    connection.tick(nowMs + 4 * minuteMs);
    expect(connection.isClosed).toBe(false);
    client.socket.resume();
    const asked = lastId;
    await expect.poll(() => client.answer(asked).bytes, patience).toBe(2 * fullBacklogBytes);
    await ask(3);
    await expect.poll(() => client.answer(lastId).ended, patience).toBe(true);
  });

  it("holds nothing once it has read everything, although it asks for nothing more", async () => {
    await open({});
    await ask(1);
    const idleBytes = heldBytes;
    await fillKernel();
    expect(heldBytes).toBeGreaterThan(idleBytes);
    client.socket.resume();
    await expect.poll(() => client.answer(lastId).ended, patience).toBe(true);
    await expect.poll(() => socket.writableLength, patience).toBe(0);
    connection.tick(performance.now());
    expect(heldBytes).toBe(idleBytes);
  });
});
