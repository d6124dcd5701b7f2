import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { createCertificates } from "@sluice/test-servers";
import { afterEach, describe, expect, it } from "vitest";
import { createGatedCounters } from "../../../../testing/gated-counters.ts";
import { ErrorCode, Flag, FrameType, maxPayload, maxWindow, preface } from "./frames.ts";
import { AttackedServer, watchMemory } from "./testing/attacked-server.ts";
import { frame, message, type RawClient, requestBlock, uint32 } from "./testing/raw-client.ts";

/**
 * Attacks on the frames of HTTP/2, by raw sockets on a real server: each is cut short, holds little, and leaves a neighbour on
 * another connection alone. What clients can do by whole calls is in `../attacks.test.ts`, and what they can do to streams in
 * `stream-attacks.test.ts`.
 */

const mebibyte = 1024 * 1024;
const patience = { timeout: 30_000, interval: 20 };
const server = new AttackedServer(createCertificates);

afterEach(() => server.close());

/** An attack in clear text, and the same over TLS. */
function itBothWays(name: string, attack: () => Promise<void>): void {
  it(name, attack);
  it(`${name}, over TLS`, () => {
    server.secure = true;
    return attack();
  });
}

const request = CheckRequest.fromPartial({ dimensions: { user: "ada" } });
const body = message(CheckRequest.encode(request).finish());
const path = (method: string): string => `/sluice.v1.RateLimiter/${method}`;
const whole = Flag.endHeaders | Flag.endStream;
const checkBlock = requestBlock(path("Check"));
const batch = message(
  CheckBatchRequest.encode(
    CheckBatchRequest.fromPartial({ checks: Array.from({ length: 1_000 }, () => ({ ...request, details: true })) }),
  ).finish(),
);

/** A call in two frames. */
const call = (id: number, block = checkBlock): Buffer =>
  Buffer.concat([
    frame(FrameType.headers, Flag.endHeaders, id, block),
    frame(FrameType.data, Flag.endStream, id, body),
  ]);

/** A large message, in frames of the usual size. */
function dataFrames(id: number, bytes: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += maxPayload) {
    const part = bytes.subarray(at, at + maxPayload);
    frames.push(frame(FrameType.data, at + maxPayload >= bytes.length ? Flag.endStream : 0, id, part));
  }
  return Buffer.concat(frames);
}

/** Sends bytes again and again until the server hangs up, at most so often. Returns how often that was. */
async function flood(attacker: RawClient, bytes: (i: number) => Uint8Array, most: number): Promise<number> {
  let sent = 0;
  while (sent < most && !attacker.closed && attacker.goAway === undefined) {
    await attacker.sendAll(bytes(sent));
    sent += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sent;
}

describe("resets", () => {
  it("by the client are cut short when there are too many of them", async () => {
    await server.listen();
    const grown = watchMemory();
    const attacker = await server.attack();
    const perTurn = 500;
    const pairs = (turn: number): Buffer =>
      Buffer.concat(
        Array.from({ length: perTurn }, (_, i) => {
          const id = 2 * (turn * perTurn + i) + 1;
          const headers = frame(FrameType.headers, Flag.endHeaders, id, checkBlock);
          return Buffer.concat([headers, frame(FrameType.resetStream, 0, id, uint32(ErrorCode.cancel))]);
        }),
      );
    await flood(attacker, pairs, 1_000);
    await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
    expect(server.decided).toBe(0);
    await server.neighbourIsWell();
    await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
    expect(await server.metrics.render()).toContain(
      'sluice_connections_turned_away_total{protocol="grpc",reason="flood"} 1\n',
    );
  });

  itBothWays("leave calls that were begun in their places until counters have answered", async () => {
    const counters = createGatedCounters();
    const held = { perConnection: mebibyte, knownCallers: 2 * mebibyte, unknownCallers: mebibyte };
    await server.listen(counters, { held });
    const attacker = await server.attack();
    for (let i = 0; i < 1_000; i++)
      attacker.send(call(2 * i + 1), frame(FrameType.resetStream, 0, 2 * i + 1, uint32(ErrorCode.cancel)));
    attacker.send(call(2_001));
    // Each keeps 4 KiB, and the connection may keep a mebibyte.
    await expect.poll(() => attacker.answer(2_001).headers["sluice-code"], patience).toBe("overloaded");
    expect(counters.taken).toBeLessThanOrEqual(256);
    counters.open();
    await expect
      .poll(() => {
        const id = 2_001 + 2 * attacker.answers.size;
        attacker.send(call(id));
        return [...attacker.answers.values()].some(({ headers }) => headers["grpc-status"] === "0");
      }, patience)
      .toBe(true);
  });

  /** Frames that make a server reset a stream (MadeYouReset, CVE-2025-8671). */
  const mistakes: Record<string, (id: number) => Buffer> = {
    "WINDOW_UPDATE of nothing": (id) => frame(FrameType.windowUpdate, 0, id, uint32(0)),
    "WINDOW_UPDATE of too much": (id) => frame(FrameType.windowUpdate, 0, id, uint32(maxWindow)),
    "PRIORITY of the wrong length": (id) => frame(FrameType.priority, 0, id, uint32(0)),
    "PRIORITY on itself": (id) => frame(FrameType.priority, 0, id, Buffer.concat([uint32(id), Buffer.from([1])])),
    "DATA behind the end": (id) => frame(FrameType.data, 0, id, body),
    "HEADERS behind the end": (id) => frame(FrameType.headers, whole, id, checkBlock),
  };
  for (const [name, mistake] of Object.entries(mistakes))
    itBothWays(`that a client provokes are cut short: ${name}`, async () => {
      const counters = createGatedCounters();
      await server.listen(counters);
      const attacker = await server.attack();
      await flood(attacker, (i) => Buffer.concat([call(2 * i + 1), mistake(2 * i + 1)]), 2_000);
      await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
      expect(counters.taken).toBeLessThan(300);
      counters.open();
      await server.neighbourIsWell();
    });

  it("are not provoked by HEADERS on a stream that is over: the connection ends", async () => {
    await server.listen();
    const attacker = await server.attack();
    attacker.send(call(1));
    await expect.poll(() => attacker.answer(1).ended, patience).toBe(true);
    attacker.send(call(1));
    await expect.poll(() => attacker.goAway, patience).toBe(ErrorCode.streamClosed);
    expect(server.decided).toBe(1);
  });
});

describe("header blocks", () => {
  for (const size of [0, 1, maxPayload])
    it(`without end are cut short: CONTINUATION of ${size} bytes`, async () => {
      await server.listen();
      const grown = watchMemory();
      const attacker = await server.attack();
      attacker.send(frame(FrameType.headers, 0, 1, checkBlock));
      const next = frame(FrameType.continuation, 0, 1, Buffer.alloc(size, 0x82));
      const sent = await flood(attacker, () => next, 10_000);
      await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
      expect(sent).toBeLessThan(10_000);
      await server.neighbourIsWell();
      await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
    });

  itBothWays("that name a large field again and again are refused, and the connection goes on", async () => {
    await server.listen();
    const attacker = await server.attack();
    const value = Buffer.alloc(3_900, 0x79);
    const kept = Buffer.concat([Buffer.from([0x40, 1, 0x78, 127, ...varint(value.length - 127)]), value]);
    attacker.send(frame(FrameType.headers, whole, 1, Buffer.concat([checkBlock, kept])));
    const grown = watchMemory();
    // Each byte of the block stands for 3.9 kB: 64 MB a block.
    const references = Buffer.alloc(maxPayload - checkBlock.length, 0xbe);
    const bomb = frame(FrameType.headers, whole, 0, Buffer.concat([checkBlock, references]));
    for (let id = 3; id < 401; id += 2) {
      bomb.writeUInt32BE(id, 5);
      await attacker.sendAll(bomb);
    }
    attacker.send(call(401));
    await expect.poll(() => attacker.answer(401).headers["grpc-status"], patience).toBe("0");
    expect(attacker.answer(201).headers[":status"]).toBe("431");
    await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
    await server.neighbourIsWell();
  });

  it("that are larger than they may be once decoded get status 431, and the connection goes on", async () => {
    await server.listen();
    const attacker = await server.attack();
    const large = requestBlock(path("Check"), [
      ["x-large", "y".repeat(14_000)],
      ["x-more", "z".repeat(2_300)],
    ]);
    attacker.send(frame(FrameType.headers, whole, 1, large), call(3));
    await expect.poll(() => attacker.answer(3).headers["grpc-status"], patience).toBe("0");
    expect(attacker.answer(1).headers[":status"]).toBe("431");
  });

  it("that cannot be decoded end the connection", async () => {
    await server.listen();
    for (const block of ["80", "ff ff ff ff ff 7f", "40 84 ff ff ff ff 00", "3f e2 1f", "be"]) {
      const attacker = await server.attack();
      attacker.send(frame(FrameType.headers, whole, 1, Buffer.from(block.replaceAll(" ", ""), "hex")));
      await expect.poll(() => attacker.goAway, patience).toBe(ErrorCode.compressionError);
    }
    await server.neighbourIsWell();
  });
});

describe("frames that ask for nothing", () => {
  const perTurn = 1_000;
  const many = (one: Buffer): Buffer => Buffer.concat(Array.from({ length: perTurn }, () => one));
  const open = frame(FrameType.headers, Flag.endHeaders, 1, checkBlock);
  const floods: Record<string, { before?: Buffer; frames: Buffer }> = {
    PING: { frames: many(frame(FrameType.ping, 0, 0, Buffer.alloc(8))) },
    "acknowledged PING": { frames: many(frame(FrameType.ping, Flag.acknowledge, 0, Buffer.alloc(8))) },
    SETTINGS: { frames: many(frame(FrameType.settings, 0, 0)) },
    "SETTINGS of windows": { frames: many(frame(FrameType.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0xff, 0xff]))) },
    "acknowledged SETTINGS": { frames: many(frame(FrameType.settings, Flag.acknowledge, 0)) },
    "empty DATA": { before: open, frames: many(frame(FrameType.data, 0, 1)) },
    "DATA of nothing but padding": {
      before: open,
      frames: many(frame(FrameType.data, Flag.padded, 1, Buffer.from([0]))),
    },
    PRIORITY: { frames: many(frame(FrameType.priority, 0, 5, Buffer.from([0, 0, 0, 3, 1]))) },
    "WINDOW_UPDATE of the connection": { frames: many(frame(FrameType.windowUpdate, 0, 0, uint32(1))) },
    "WINDOW_UPDATE of a stream": { before: open, frames: many(frame(FrameType.windowUpdate, 0, 1, uint32(1))) },
    GOAWAY: { frames: many(frame(FrameType.goAway, 0, 0, Buffer.alloc(8))) },
    "frames of unknown kinds": { frames: many(frame(0xee, 0xff, 0, Buffer.alloc(20))) },
    "RST_STREAM of streams that are over": {
      before: call(1),
      frames: many(frame(FrameType.resetStream, 0, 1, uint32(8))),
    },
  };
  const playedBothWays = new Set(["PING", "SETTINGS of windows", "empty DATA", "WINDOW_UPDATE of a stream"]);
  for (const [name, { before, frames }] of Object.entries(floods))
    (playedBothWays.has(name) ? itBothWays : it)(`close the connection when there are too many: ${name}`, async () => {
      await server.listen();
      const grown = watchMemory();
      const attacker = await server.attack();
      if (before !== undefined) attacker.send(before);
      const turns = await flood(attacker, () => frames, 500);
      await expect.poll(() => [attacker.goAway, attacker.closed], patience).toEqual([ErrorCode.enhanceYourCalm, true]);
      expect(turns).toBeLessThan(500);
      await server.neighbourIsWell();
      await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
    });

  it("are fine as long as they come with calls", async () => {
    await server.listen();
    const client = await server.attack();
    // Three frames for each call, as careful clients send them, and far more than the budget altogether.
    const acknowledged = (id: number): Buffer =>
      Buffer.concat([
        call(id),
        frame(FrameType.windowUpdate, 0, 0, uint32(100)),
        frame(FrameType.ping, 0, 0, Buffer.alloc(8)),
        frame(FrameType.settings, 0, 0),
      ]);
    const calls = 8_000;
    for (let turn = 0; turn < calls / 100; turn++) {
      await client.sendAll(
        Buffer.concat(Array.from({ length: 100 }, (_, i) => acknowledged(2 * (turn * 100 + i) + 1))),
      );
      await expect.poll(() => client.answers.size, patience).toBe((turn + 1) * 100);
    }
    expect([server.decided, client.goAway, client.closed]).toEqual([calls, undefined, false]);
  });
});

describe("windows", () => {
  itBothWays("that overflow end the stream, or the connection", async () => {
    const counters = createGatedCounters();
    await server.listen(counters);
    const attacker = await server.attack();
    attacker.send(call(1), frame(FrameType.windowUpdate, 0, 1, uint32(maxWindow)));
    await expect.poll(() => attacker.answer(1).reset, patience).toBe(ErrorCode.flowControlError);
    attacker.send(frame(FrameType.windowUpdate, 0, 0, uint32(maxWindow)));
    await expect.poll(() => attacker.goAway, patience).toBe(ErrorCode.flowControlError);
    const other = await server.attack();
    other.send(call(1), frame(FrameType.windowUpdate, 0, 1, uint32(maxWindow - 70_000)));
    other.send(frame(FrameType.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(maxWindow)])));
    await expect.poll(() => other.goAway, patience).toBe(ErrorCode.flowControlError);
    counters.open();
    await server.neighbourIsWell();
  });

  it("that are not respected end the stream", async () => {
    await server.listen();
    const attacker = await server.attack();
    attacker.send(frame(FrameType.headers, Flag.endHeaders, 1, requestBlock(path("CheckStream"))));
    const half = Buffer.alloc(maxPayload);
    half.writeUInt32BE(0, 1);
    // The first message says that it has a mebibyte; nothing of it is taken before it is whole.
    half.writeUInt32BE(mebibyte, 1);
    attacker.send(frame(FrameType.data, 0, 1, half));
    const part = frame(FrameType.data, 0, 1, Buffer.alloc(maxPayload));
    // Without waiting to be told to go on: all of it is within what is told meanwhile, or refused.
    for (let i = 0; i < 100; i++) attacker.send(part);
    await expect
      .poll(() => attacker.answer(1).reset ?? attacker.answer(1).headers["grpc-status"], patience)
      .toBeDefined();
    expect(attacker.goAway).toBeUndefined();
    await server.neighbourIsWell();
  });

  itBothWays(
    "of zero hold answers back, cost little however often they grow by a byte, and end after a while",
    async () => {
      await server.listen(undefined, { unreadMs: 400 });
      const grown = watchMemory();
      // No answer may be sent at first.
      const attacker = await server.attack(Buffer.from([0, 4, 0, 0, 0, 0]));
      const streams = 100;
      for (let i = 0; i < streams; i++) attacker.send(call(2 * i + 1));
      await expect.poll(() => server.decided, patience).toBe(streams);
      for (let i = 0; i < 2_000; i++) attacker.send(frame(FrameType.windowUpdate, 0, 0, uint32(1)));
      await server.neighbourIsWell();
      await expect
        .poll(() => [...attacker.answers.values()].filter(({ reset }) => reset === ErrorCode.cancel).length, patience)
        .toBe(streams);
      await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
      expect(attacker.goAway).toBeUndefined();
    },
  );

  itBothWays("of one byte let an answer through byte by byte, and lose nothing", async () => {
    await server.listen();
    const client = await server.attack(Buffer.from([0, 4, 0, 0, 0, 0]));
    client.send(call(1));
    let told = 0;
    await expect
      .poll(
        () => {
          const { bytes, ended } = client.answer(1);
          if (bytes === told && !ended) {
            told += 1;
            client.send(frame(FrameType.windowUpdate, 0, 1, uint32(1)));
          }
          return ended;
        },
        { ...patience, interval: 1 },
      )
      .toBe(true);
    expect(client.answer(1).headers["grpc-status"]).toBe("0");
    expect(client.answer(1).bytes).toBe(told);
    expect(told).toBeGreaterThan(20);
  });
});

describe("clients that do not read", () => {
  itBothWays("get no more answers than the kernel holds, and are cut off after a while", async () => {
    await server.listen(undefined, { unreadMs: 1_000 });
    const grown = watchMemory();
    const attacker = await server.attack(Buffer.concat([Buffer.from([0, 4]), uint32(maxWindow)]));
    attacker.send(frame(FrameType.windowUpdate, 0, 0, uint32(maxWindow - 65_535)));
    attacker.socket.pause();
    const block = requestBlock(path("CheckBatch"));
    // 200 answers of 225 kB each: 45 MB.
    for (let i = 0; i < 200; i++) {
      const id = 2 * i + 1;
      attacker.send(frame(FrameType.headers, Flag.endHeaders, id, block), dataFrames(id, batch));
    }
    await server.neighbourIsWell();
    await expect.poll(() => server.decided, patience).toBeGreaterThan(1_000);
    await server.neighbourIsWell();
    expect(server.decided).toBeLessThan(100_000);
    await expect.poll(() => server.accepted[0]!.destroyed, patience).toBe(true);
    await server.neighbourIsWell();
    await expect.poll(grown, patience).toBeLessThan(30 * mebibyte);
  });

  itBothWays("are read no further while what they asked for is not read: PING", async () => {
    await server.listen();
    const attacker = await server.attack();
    attacker.socket.pause();
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(FrameType.ping, 0, 0, Buffer.alloc(8))));
    const grown = watchMemory();
    for (let i = 0; i < 300; i++) attacker.send(pings);
    await server.neighbourIsWell();
    attacker.socket.resume();
    await expect.poll(() => attacker.closed, patience).toBe(true);
    await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
  });
});

describe("connections that begin and do not go on", () => {
  const half = frame(FrameType.headers, Flag.endHeaders, 1, checkBlock);
  const openings: Record<string, readonly Uint8Array[]> = {
    "half a preface": [preface.subarray(0, 10)],
    "a preface without SETTINGS": [preface],
    "SETTINGS without an acknowledgement": [preface, frame(FrameType.settings, 0, 0)],
    "half a frame": [preface, frame(FrameType.settings, 0, 0), half.subarray(0, half.length - 3)],
  };
  for (const [name, parts] of Object.entries(openings))
    it(`are closed after a while: ${name}`, async () => {
      await server.listen(undefined, { helloWithinMs: 100 });
      const attacker = server.connect();
      attacker.send(...parts);
      await expect.poll(() => attacker.closed, patience).toBe(true);
      await server.neighbourIsWell();
    });

  itBothWays("hold half a frame each, and all together no more than unidentified callers may", async () => {
    const held = { perConnection: mebibyte, knownCallers: 8 * mebibyte, unknownCallers: mebibyte / 4 };
    await server.listen(undefined, { held });
    // Each says that 16 KiB follow, and sends ten bytes of them.
    const begun = frame(FrameType.data, 0, 1, Buffer.alloc(maxPayload)).subarray(0, 20);
    for (let i = 0; i < 50; i++) (await server.attack()).send(begun);
    await expect
      .poll(() => server.attackers.filter(({ closed }) => closed).length, patience)
      .toBeGreaterThanOrEqual(34);
    await server.neighbourIsWell();
  });

  it("say something else than HTTP/2: an answer in words for HTTP/1.1, and the end for the rest", async () => {
    await server.listen();
    const client = server.connect();
    client.socket.removeAllListeners("data");
    let text = "";
    client.socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    client.send(Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    await expect.poll(() => client.closed, patience).toBe(true);
    expect(text).toMatch(/HTTP\/1\.1 505 [\s\S]*gRPC/);
    const other = server.connect();
    other.send(Buffer.from("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more of a handshake"));
    await expect.poll(() => [other.goAway, other.closed], patience).toEqual([ErrorCode.protocolError, true]);
    await server.neighbourIsWell();
  });
});

function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left >>= 7) bytes.push((left & 0x7f) | 0x80);
  return [...bytes, left];
}
