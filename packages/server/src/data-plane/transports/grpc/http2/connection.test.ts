import { CheckRequest } from "@sluice/protocol";
import { createLimiter } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { createTestService, type ListeningTransport, listenForTest } from "../../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../../testing/whole-servers.ts";
import type { GrpcServerOptions } from "../server.ts";
import { ErrorCode, Flag, FrameType, maxWindow } from "./frames.ts";
import { frame, message, RawClient, requestBlock } from "./testing/raw-client.ts";

const patience = { timeout: 30_000, interval: 10 };
let listening: ListeningTransport;
let client: RawClient;

async function open(options: GrpcServerOptions = {}): Promise<void> {
  const transport = wholeGrpcServer(createTestService(createLimiter({})), { ...options, engine: "sluice" });
  listening = await listenForTest("grpc", transport);
  client = await RawClient.open(listening.port);
}

afterEach(async () => {
  client.destroy();
  await listening.close();
});

const headers = requestBlock("/sluice.v1.RateLimiter/Check");
const body = message(CheckRequest.encode(CheckRequest.fromPartial({ dimensions: { user: "ada" } })).finish());
const begin = (id: number): Buffer => frame(FrameType.headers, Flag.endHeaders, id, headers);
const finish = (id: number): Buffer => frame(FrameType.data, Flag.endStream, id, body);
const status = (id: number): string | undefined => client.answer(id).headers["grpc-status"];

/** Answers the server's last PING. */
const pong = (): Buffer => frame(FrameType.ping, Flag.acknowledge, 0, client.lastPing);

describe("a connection that is asked to go", () => {
  it("hears so twice: calls between the two are answered, later ones are not, and the last answer closes it", async () => {
    await open();
    client.send(begin(1), finish(1), begin(3));
    await expect.poll(() => status(1), patience).toBe("0");
    const drained = listening.close(30_000);
    await expect.poll(() => [client.lastIds, client.pings], patience).toEqual([[maxWindow], 1]);
    // Sent before the client has heard of it.
    client.send(begin(5), finish(5));
    await expect.poll(() => status(5), patience).toBe("0");
    client.send(pong());
    await expect.poll(() => client.lastIds, patience).toEqual([maxWindow, 5]);
    client.send(begin(7), finish(7), finish(3));
    await expect.poll(() => [status(3), client.closed], patience).toEqual(["0", true]);
    expect([status(7), client.goAway]).toEqual([undefined, ErrorCode.noError]);
    expect(await drained).toBe(0);
  });

  it("goes after a while if it does not answer", async () => {
    await open();
    client.send(begin(1), finish(1));
    await expect.poll(() => status(1), patience).toBe("0");
    expect(await listening.close(30_000)).toBe(0);
    await expect.poll(() => [client.lastIds, client.closed], patience).toEqual([[maxWindow, 1], true]);
  });

  it("is one that has reached its age", async () => {
    await open({ maxAgeMs: 100 });
    client.send(begin(1), finish(1));
    await expect.poll(() => client.lastIds, patience).toEqual([maxWindow, 1]);
    await expect.poll(() => client.closed, patience).toBe(true);
    expect([status(1), client.goAway]).toEqual(["0", ErrorCode.noError]);
  });
});

describe("a connection that is silent", () => {
  it("is asked whether it is there, and stays as long as it answers", async () => {
    await open({ silentMs: 50, replyMs: 20_000 });
    for (let asked = 1; asked <= 3; asked++) {
      await expect.poll(() => client.pings, patience).toBeGreaterThanOrEqual(asked);
      client.send(pong());
    }
    client.send(begin(1), finish(1));
    await expect.poll(() => status(1), patience).toBe("0");
  });

  it("is closed if it does not answer", async () => {
    await open({ silentMs: 50, replyMs: 50 });
    await expect.poll(() => client.closed, patience).toBe(true);
    expect(client.pings).toBeGreaterThanOrEqual(1);
  });
});
