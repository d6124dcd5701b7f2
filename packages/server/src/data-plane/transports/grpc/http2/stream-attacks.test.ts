import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { createCertificates } from "@sluice/test-servers";
import { afterEach, describe, expect, it } from "vitest";
import { createGatedCounters } from "../../../../testing/gated-counters.ts";
import { Turns } from "../../turns.ts";
import { ErrorCode, Flag, FrameType, maxPayload, maxWindow } from "./frames.ts";
import { encodeHeaders } from "./hpack/encode-headers.ts";
import { AttackedServer, watchMemory } from "./testing/attacked-server.ts";
import { frame, message, type RawClient, requestBlock, uint32 } from "./testing/raw-client.ts";

/** Attacks by streams that are open, cancelled, refused or not read, by raw sockets on a real server. */

const mebibyte = 1024 * 1024;
const patience = { timeout: 30_000, interval: 20 };
const server = new AttackedServer(createCertificates);

afterEach(() => server.close());

const path = (method: string): string => `/sluice.v1.RateLimiter/${method}`;
const check = CheckRequest.fromPartial({ dimensions: { user: "ada" } });
const createBatch = (checks: number): Buffer =>
  message(
    CheckBatchRequest.encode(
      CheckBatchRequest.fromPartial({ checks: Array.from({ length: checks }, () => ({ ...check, details: true })) }),
    ).finish(),
  );

const begin = (id: number, method: string): Buffer =>
  frame(FrameType.headers, Flag.endHeaders, id, requestBlock(path(method)));
const body = message(CheckRequest.encode(check).finish());
const call = (id: number): Buffer =>
  Buffer.concat([begin(id, "Check"), frame(FrameType.data, Flag.endStream, id, body)]);
const cancel = (id: number): Buffer => frame(FrameType.resetStream, 0, id, uint32(ErrorCode.cancel));

function batchCall(id: number): Buffer {
  const bytes = createBatch(1_000);
  const frames = [begin(id, "CheckBatch")];
  for (let at = 0; at < bytes.length; at += maxPayload)
    frames.push(
      frame(
        FrameType.data,
        at + maxPayload < bytes.length ? 0 : Flag.endStream,
        id,
        bytes.subarray(at, at + maxPayload),
      ),
    );
  return Buffer.concat(frames);
}

const windowSetting = (bytes: number): Buffer => Buffer.concat([Buffer.from([0, 4]), uint32(bytes)]);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits until the server has read everything that was sent before. */
async function allRead(client: RawClient): Promise<void> {
  const { pings } = client;
  client.send(frame(FrameType.ping, 0, 0, Buffer.alloc(8)));
  await expect.poll(() => client.pings, patience).toBeGreaterThan(pings);
}

describe("settings", () => {
  it("that resize the windows of all streams thousands of times in one frame close the connection", async () => {
    const counters = createGatedCounters();
    await server.listen(counters);
    const attacker = await server.attack();
    const streams = 1_000;
    for (let i = 0; i < streams; i++) attacker.send(call(2 * i + 1));
    await expect.poll(() => counters.taken, patience).toBe(streams);
    const sizes = Array.from({ length: 2_000 }, (_, i) => windowSetting(60_000 + (i % 2)));
    attacker.send(frame(FrameType.settings, 0, 0, Buffer.concat(sizes)));
    await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
    counters.open();
    await server.neighbourIsWell();
  });
});

describe("frames behind a reset of ours", () => {
  /** A stream that is refused by its headers, and reset because its client is still sending. */
  async function refusedStream(): Promise<RawClient> {
    await server.listen();
    const attacker = await server.attack();
    attacker.send(begin(1, "NoSuchMethod"));
    await expect.poll(() => attacker.answer(1).reset, patience).toBe(ErrorCode.noError);
    return attacker;
  }

  const floods: Record<string, Buffer> = {
    "empty DATA": frame(FrameType.data, 0, 1),
    "DATA of nothing but padding": frame(FrameType.data, Flag.padded, 1, Buffer.from([0])),
    HEADERS: begin(1, "Check"),
  };
  for (const [name, one] of Object.entries(floods))
    it(`close the connection when there are too many: ${name}`, async () => {
      const attacker = await refusedStream();
      const many = Buffer.concat(Array.from({ length: 1_000 }, () => one));
      for (let i = 0; i < 200 && attacker.goAway === undefined; i++) {
        await attacker.sendAll(many);
        await turn();
      }
      await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
      await server.neighbourIsWell();
    });

  it("are read until the client's own end, and not behind it", async () => {
    const client = await refusedStream();
    client.send(frame(FrameType.data, 0, 1, body), frame(FrameType.data, Flag.endStream, 1), call(3));
    await expect.poll(() => client.answer(3).headers["grpc-status"], patience).toBe("0");
    expect(client.goAway).toBeUndefined();
    client.send(frame(FrameType.data, 0, 1, body));
    await expect.poll(() => client.goAway, patience).toBe(ErrorCode.streamClosed);
  });

  it("may be on as many streams as a client can have open, and more", async () => {
    await server.listen();
    const client = await server.attack();
    client.send(call(1));
    const streams = 9_000;
    const ids = Array.from({ length: streams }, (_, i) => 2 * i + 3);
    // As some clients do: the headers of all calls, and then their messages.
    for (let at = 0; at < streams; at += 500) {
      await client.sendAll(Buffer.concat(ids.slice(at, at + 500).map((id) => begin(id, "NoSuchMethod"))));
      await allRead(client);
    }
    await client.sendAll(Buffer.concat(ids.map((id) => frame(FrameType.data, Flag.endStream, id, body))));
    const last = 2 * streams + 3;
    client.send(call(last));
    await expect.poll(() => client.answer(last).headers["grpc-status"], patience).toBe("0");
    expect(client.goAway).toBeUndefined();
  });
});

describe("many small messages in one frame", () => {
  /** Turns that are over as soon as someone asks. */
  class ShortTurns extends Turns {
    override mayGoOn(): boolean {
      return false;
    }
  }

  it("are decided in several turns, in order, and all before the end", async () => {
    await server.listen(undefined, { turns: new ShortTurns() });
    const client = await server.attack(windowSetting(maxWindow));
    client.send(frame(FrameType.windowUpdate, 0, 0, uint32(maxWindow - 65_535)), begin(1, "CheckStream"));
    const one = createBatch(1);
    const messages = Math.floor(maxPayload / one.length);
    client.send(frame(FrameType.data, Flag.endStream, 1, Buffer.concat(Array.from({ length: messages }, () => one))));
    let most = 0;
    let before = 0;
    while (!client.answer(1).ended && !client.closed) {
      most = Math.max(most, server.decided - before);
      before = server.decided;
      await turn();
    }
    expect([server.decided, client.answer(1).headers["grpc-status"]]).toEqual([messages, "0"]);
    expect(messages).toBeGreaterThan(500);
    expect(most).toBeLessThan(200);
  });
});

describe("cancelled streams", () => {
  it("keep their places until counters have answered", async () => {
    const counters = createGatedCounters();
    const held = { perConnection: mebibyte, knownCallers: 2 * mebibyte, unknownCallers: mebibyte };
    await server.listen(counters, { held });
    const attacker = await server.attack();
    const batch = createBatch(1);
    for (let i = 0; i < 1_000; i++) {
      const id = 2 * i + 1;
      attacker.send(begin(id, "CheckStream"), frame(FrameType.data, 0, id, batch), cancel(id));
    }
    attacker.send(call(2_001));
    // Each keeps 4 KiB, and the connection may keep a mebibyte.
    await expect.poll(() => attacker.answer(2_001).headers["sluice-code"], patience).toBe("overloaded");
    expect(counters.taken).toBeLessThanOrEqual(256);
    counters.open();
    let id = 2_001;
    await expect
      .poll(() => {
        id += 2;
        attacker.send(call(id));
        return [...attacker.answers.values()].some(({ headers }) => headers["grpc-status"] === "0");
      }, patience)
      .toBe(true);
  });
});

describe("a client that does not read, and leaves", () => {
  it("is charged for nothing that was not begun", async () => {
    await server.listen();
    const attacker = await server.attack(windowSetting(0));
    // Answers of 225 kB each: after 8 MiB of them, calls wait.
    for (let i = 0; i < 60; i++) attacker.send(batchCall(2 * i + 1));
    await allRead(attacker);
    const { decided } = server;
    expect(decided).toBeGreaterThan(10_000);
    expect(decided).toBeLessThan(60_000);
    attacker.destroy();
    await expect.poll(() => server.accepted[0]!.destroyed, patience).toBe(true);
    await turn();
    expect(server.decided).toBe(decided);
  });
});

describe("small answers that wait behind others", () => {
  for (const secure of [false, true])
    it(`take no more memory than their bytes ${secure ? "over TLS" : "in clear text"}`, async () => {
      server.secure = secure;
      await server.listen();
      const attacker = await server.attack(windowSetting(maxWindow));
      attacker.send(frame(FrameType.windowUpdate, 0, 0, uint32(maxWindow - 65_535)));
      await allRead(attacker);
      attacker.socket.pause();
      const [socket] = server.accepted;
      let id = 1;
      const ask = async (bytes: Buffer): Promise<void> => {
        const { decided } = server;
        attacker.send(bytes);
        id += 2;
        while (server.decided === decided) await turn();
        for (let i = 0; i < 5; i++) await turn();
      };
      // Until the kernel takes no more.
      while (socket!.writableLength < 100_000) await ask(batchCall(id));
      const grown = watchMemory();
      for (let i = 0; i < 2_000; i++) await ask(call(id));
      expect(socket!.writableLength).toBeLessThan(mebibyte);
      expect(grown()).toBeLessThan(20 * mebibyte);
      attacker.socket.resume();
      await expect.poll(() => attacker.answer(id - 2).headers["grpc-status"], patience).toBe("0");
    }, 60_000);
});

describe("refusals", () => {
  const counted = async (method: string, code: string): Promise<number> => {
    const series = `sluice_grpc_calls_total{method="${method}",code="${code}"} `;
    const line = (await server.metrics.render()).split("\n").find((one) => one.startsWith(series));
    return Number(line?.slice(series.length) ?? 0);
  };

  it("of a compressed message do not repeat a long name, fit into a frame, and are counted", async () => {
    await server.listen();
    const attacker = await server.attack();
    const encoding = "\xe9".repeat(12_000);
    const block = requestBlock("/grpc.health.v1.Health/Check", [["grpc-encoding", encoding]]);
    const compressed = frame(FrameType.data, Flag.endStream, 1, Buffer.from([1, 0, 0, 0, 1, 0]));
    attacker.send(frame(FrameType.headers, Flag.endHeaders, 1, block), compressed, call(3));
    await expect.poll(() => attacker.answer(3).headers["grpc-status"], patience).toBe("0");
    expect(attacker.answer(1).headers).toMatchObject({ "grpc-status": "12", "grpc-accept-encoding": "identity" });
    expect(await counted("grpc.health.v1.Health/Check", "UNIMPLEMENTED")).toBe(1);
  });

  it("of a second message are counted", async () => {
    await server.listen();
    const client = await server.attack();
    client.send(begin(1, "Check"), frame(FrameType.data, Flag.endStream, 1, Buffer.concat([body, body])));
    await expect.poll(() => client.answer(1).headers["grpc-status"], patience).toBe("12");
    expect([await counted("sluice.v1.RateLimiter/Check", "UNIMPLEMENTED"), server.decided]).toEqual([1, 0]);
  });

  it("of methods that there are not are counted under one name", async () => {
    await server.listen();
    const client = await server.attack();
    for (let i = 0; i < 20; i++) client.send(begin(2 * i + 1, `Method${i}`));
    await expect.poll(() => client.answer(39).headers["grpc-status"], patience).toBe("12");
    expect(await counted("unknown", "UNIMPLEMENTED")).toBe(20);
    expect(await server.metrics.render()).not.toContain("Method7");
  });

  it("of a timeout that is none are counted", async () => {
    await server.listen();
    const client = await server.attack();
    const block = requestBlock(path("Check"), [["grpc-timeout", "soon"]]);
    client.send(frame(FrameType.headers, Flag.endHeaders, 1, block));
    await expect.poll(() => client.answer(1).headers["grpc-status"], patience).toBe("3");
    expect(await counted("sluice.v1.RateLimiter/Check", "INVALID_ARGUMENT")).toBe(1);
  });

  it("of other HTTP methods name the one that there is, and have no body for HEAD", async () => {
    await server.listen();
    const client = await server.attack();
    for (const [i, method] of ["GET", "HEAD", "OPTIONS"].entries()) {
      const block = encodeHeaders([
        [":method", method],
        [":scheme", "http"],
        [":path", path("Check")],
      ]);
      client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, 2 * i + 1, block));
    }
    await expect.poll(() => [1, 3, 5].map((id) => client.answer(id).ended), patience).toEqual([true, true, true]);
    for (const id of [1, 3, 5]) expect(client.answer(id).headers).toMatchObject({ ":status": "405", allow: "POST" });
    expect([1, 3, 5].map((id) => client.answer(id).bytes > 0)).toEqual([true, false, true]);
  });
});
