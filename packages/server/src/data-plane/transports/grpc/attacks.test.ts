import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { CheckBatchRequest, CheckRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { HealthDefinition as health } from "@sluice/protocol/health";
import { type CounterStore, createLimiter, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { createMetrics } from "../../../observe/telemetry/metrics.ts";
import { createGatedCounters } from "../../../testing/gated-counters.ts";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { usedGrpcEngine, wholeGrpcServer } from "../../../testing/whole-servers.ts";
import { type Access, openAccess } from "../../access/access.ts";
import { createDecide } from "../../service/create-decide.ts";
import type { ServiceOptions } from "../../service/create-service.ts";
import { type GrpcServerOptions, maxMessageBytes } from "./server.ts";

/** Attacks by raw HTTP/2 clients over real connections. They use the transport alone, whatever serves HTTP/2 inside it. */

const mebibyte = 1024 * 1024;
const patience = { timeout: 30_000, interval: 20 };
let listening: ListeningTransport | undefined;
let sessions: ClientHttp2Session[] = [];
let clients: GrpcTestClient[] = [];

function limiterOn(counters: CounterStore = new MemoryCounters()): Limiter {
  const policies = [
    {
      id: "calls",
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: [{ limit: 1_000_000, per: "never" }] }],
    },
  ];
  return createLimiter({ policies: { policies, default: "none" }, counters });
}

async function listen(
  counters?: CounterStore,
  options?: GrpcServerOptions,
  parts: Partial<Omit<ServiceOptions, "limiter">> = {},
): Promise<void> {
  listening = await listenForTest("grpc", wholeGrpcServer(createTestService(limiterOn(counters), parts), options));
}

/** A well-behaved client. */
function honest(): GrpcTestClient {
  const client = connectForTest(listening!.address);
  clients.push(client);
  return client;
}

async function attack(settings: { initialWindowSize?: number } = {}): Promise<ClientHttp2Session> {
  const session = connect(`http://${listening!.address}`, { settings, maxSessionMemory: 4_096 });
  sessions.push(session);
  session.on("error", () => {});
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  return session;
}

afterEach(async () => {
  for (const session of sessions) session.destroy();
  for (const client of clients) client.close();
  sessions = [];
  clients = [];
  await listening?.close();
  listening = undefined;
});

const request = CheckRequest.fromPartial({ dimensions: { user: "ada" } });
const path = (method: string): string => `/sluice.v1.RateLimiter/${method}`;

interface Answered {
  readonly stream: ClientHttp2Stream;
  /** `grpc-status`, once there is one. */
  status: string | undefined;
  code: string | undefined;
  closed: boolean;
}

function begin(session: ClientHttp2Session, to: string, headers: Record<string, string> = {}): Answered {
  const stream = session.request({
    ":method": "POST",
    ":path": to,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const answered: Answered = { stream, status: undefined, code: undefined, closed: false };
  const read = (got: Record<string, unknown>): void => {
    answered.status ??= got["grpc-status"]?.toString();
    answered.code ??= got["sluice-code"]?.toString();
  };
  stream.on("response", read);
  stream.on("trailers", read);
  stream.on("error", () => {});
  stream.on("close", () => {
    answered.closed = true;
  });
  return answered;
}

function framed(message: Uint8Array, compressed = false): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame[0] = compressed ? 1 : 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/** A message of 1 MiB whose last byte never comes. It is one piece of memory, however often it is sent. */
const halfMessage = framed(new Uint8Array(maxMessageBytes)).subarray(0, -1);

const createBatch = (checks: number, details = false): Buffer =>
  framed(
    CheckBatchRequest.encode(
      CheckBatchRequest.fromPartial({ checks: Array.from({ length: checks }, () => ({ ...request, details })) }),
    ).finish(),
  );

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes of all live buffers. Server and attacker share this process; the attacker sends one buffer again and again. */
function heldBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

/** Returns by how much that has grown since. */
function watchBuffers(): () => number {
  const before = heldBytes();
  return () => heldBytes() - before;
}

/** Resolves when a value has stayed the same while another client was answered 30 times. */
async function settled(figure: () => unknown): Promise<void> {
  const client = honest();
  let last: unknown;
  for (let same = 0; same < 30; ) {
    expect(await client.call(service, "check", { ...request, preview: true }, { token: "good" })).toMatchObject({
      allowed: true,
    });
    const now = figure();
    same = now === last ? same + 1 : 0;
    last = now;
  }
}

/** Knows only the token `good`. */
const access: Access = {
  identify(token) {
    if (token === "good") return openAccess.identify(undefined);
    throw new SluiceError("unauthenticated", "a token is needed");
  },
};

describe("half-sent messages", () => {
  it("hold no more than a connection may, and are refused beyond it by name", async () => {
    await listen();
    const grown = watchBuffers();
    const session = await attack();
    const calls = Array.from({ length: 120 }, () => begin(session, path("CheckBatch")));
    for (const { stream } of calls) stream.resume().write(halfMessage);
    await expect.poll(() => calls.filter((call) => call.closed).length, patience).toBeGreaterThan(50);
    await settled(() => calls.filter((call) => call.closed).length);
    await expect.poll(grown, patience).toBeLessThan(80 * mebibyte);
    const refused = calls.filter((call) => call.closed);
    for (const call of refused) expect([call.status, call.code]).toEqual([String(status.UNAVAILABLE), "overloaded"]);
    expect(session.destroyed).toBe(false);
  });

  it("of callers without a token are refused before a byte of them is kept", async () => {
    await listen(undefined, undefined, { access });
    const grown = watchBuffers();
    const session = await attack();
    const calls = Array.from({ length: 100 }, () => begin(session, path("CheckBatch")));
    for (const { stream } of calls) stream.resume().write(halfMessage);
    await expect.poll(() => calls.every((call) => call.closed), patience).toBe(true);
    await settled(() => 0);
    await expect.poll(grown, patience).toBeLessThan(10 * mebibyte);
    for (const call of calls) expect(call.status).toBe(String(status.UNAUTHENTICATED));
  });

  it("on many connections hold no more than the process may; the connection that holds the most is closed", async () => {
    const held = { perConnection: 8 * mebibyte, knownCallers: 16 * mebibyte, unknownCallers: mebibyte };
    const metrics = createMetrics({ version: "0", sources: { generation: () => 1 } });
    await listen(undefined, { held }, { metrics });
    const grown = watchBuffers();
    const quiet = await attack();
    const open = begin(quiet, path("Check"));
    const closed: ClientHttp2Session[] = [];
    for (let i = 0; i < 10; i++) {
      const session = await attack();
      session.once("close", () => closed.push(session));
      for (let j = 0; j < 4; j++) begin(session, path("CheckBatch")).stream.resume().write(halfMessage);
    }
    await expect.poll(() => closed.length, patience).toBeGreaterThanOrEqual(6);
    await settled(() => closed.length);
    await expect.poll(grown, patience).toBeLessThan(25 * mebibyte);
    expect(await metrics.render()).toContain(
      `sluice_connections_turned_away_total{protocol="grpc",reason="held_bytes"} ${closed.length}\n`,
    );
    open.stream.resume().end(framed(CheckRequest.encode(request).finish()));
    await expect.poll(() => open.status, patience).toBe("0");
  });

  it("end when they take too long; a stream that waits between messages does not", async () => {
    await listen(undefined, { messageWithinMs: 60 });
    const session = await attack();
    const idle = begin(session, path("CheckStream"));
    const calls = ["Check", "CheckBatch", "CheckStream", "Charge"].map((method) => begin(session, path(method)));
    for (const { stream } of calls) stream.resume().write(halfMessage.subarray(0, 100));
    const silent = begin(session, path("Check"));
    for (const call of [...calls, silent])
      await expect.poll(() => call.status, patience).toBe(String(status.DEADLINE_EXCEEDED));
    expect(idle.closed).toBe(false);
    idle.stream.resume().end(createBatch(1));
    await expect.poll(() => idle.status, patience).toBe("0");
  });

  it("in parts of one byte hold what those cost", async () => {
    const held = { perConnection: mebibyte, knownCallers: 2 * mebibyte, unknownCallers: mebibyte };
    await listen(undefined, { held });
    const session = await attack();
    const grown = watchBuffers();
    const call = begin(session, path("CheckBatch"));
    call.stream.resume();
    // Each write waits for the one before, so each becomes a separate frame.
    const part = halfMessage.subarray(5, 6);
    call.stream.write(halfMessage.subarray(0, 5));
    for (let sent = 0; sent < 6_000 && !call.closed; sent++)
      await new Promise<void>((resolve) => {
        if (call.stream.writable) call.stream.write(part, () => resolve());
        else resolve();
      });
    await settled(() => 0);
    // grpc-js keeps each part by itself. Where they are put together, they cost their bytes.
    if (usedGrpcEngine() === "grpc-js")
      await expect.poll(() => [call.status, call.code], patience).toEqual(["14", "overloaded"]);
    else {
      expect([call.status, call.closed]).toEqual([undefined, false]);
      await expect.poll(grown, patience).toBeLessThan(mebibyte);
    }
  });
});

describe("answers that are not read", () => {
  it("are made no faster than they are read, and none is lost", async () => {
    const limiter = limiterOn();
    const { metrics } = createTestService(limiter);
    let decided = 0;
    const decide = createDecide({ limiter, metrics, observe: (_, { preview }) => (decided += preview ? 0 : 1) });
    await listen(undefined, undefined, { decide });
    const grown = watchBuffers();
    const session = await attack({ initialWindowSize: 0 });
    const batch = createBatch(1_000, true);
    const calls = Array.from({ length: 80 }, () => begin(session, path("CheckBatch")));
    for (const { stream } of calls) stream.end(batch);
    // An answer has 225 kB, and at most 8 MiB of them wait to be sent. The other calls wait with their requests.
    await expect.poll(() => decided, patience).toBeGreaterThanOrEqual(30_000);
    await settled(() => decided);
    expect(decided).toBeLessThanOrEqual(50_000);
    await expect.poll(grown, patience).toBeLessThan(13 * mebibyte);
    session.settings({ initialWindowSize: 4 * mebibyte });
    for (const { stream } of calls) stream.resume();
    await expect.poll(() => calls.filter((call) => call.status === "0").length, patience).toBe(80);
  });

  it("of calls that counters answer all at once are reset where they are too many, and other connections go on", async () => {
    const counters = createGatedCounters();
    const held = { perConnection: 4 * mebibyte, knownCallers: 16 * mebibyte, unknownCallers: mebibyte };
    await listen(counters, { held });
    const session = await attack({ initialWindowSize: 0 });
    const calls = Array.from({ length: 30 }, () => begin(session, path("CheckBatch")));
    for (const { stream } of calls) stream.end(createBatch(1_000, true));
    await expect.poll(() => counters.taken, patience).toBe(30_000);
    const grown = watchBuffers();
    counters.open();
    await expect.poll(() => calls.filter((call) => call.closed).length, patience).toBeGreaterThan(5);
    await settled(() => calls.filter((call) => call.closed).length);
    await expect.poll(grown, patience).toBeLessThan(6 * mebibyte);
    const reset = calls.filter((call) => call.closed);
    for (const call of reset) expect(call.stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
});

describe("calls that are cancelled", () => {
  it("by the thousand while counters are stalled do no harm to other calls on the same connection", async () => {
    const counters = createGatedCounters();
    await listen(counters);
    const session = await attack();
    const body = framed(CheckRequest.encode(request).finish());
    const healthy: Answered[] = [];
    let goaway: number | undefined;
    session.once("goaway", (code: number) => {
      goaway = code;
    });
    // More than Node tolerates by default, and so fast that the server reads calls and their cancellations together.
    for (let round = 0; round < 5; round++) {
      const cancelled = Array.from({ length: 1_000 }, () => begin(session, path("Check")).stream.end(body));
      healthy.push(begin(session, "/grpc.health.v1.Health/Check"));
      healthy.at(-1)!.stream.resume().end(framed(new Uint8Array()));
      await new Promise((resolve) => setImmediate(resolve));
      for (const stream of cancelled) stream.close(constants.NGHTTP2_CANCEL);
    }
    const last = begin(session, path("Check"));
    last.stream.resume().end(body);
    counters.open();
    await expect.poll(() => last.status, patience).toBe("0");
    await expect.poll(() => healthy.map((call) => call.status), patience).toEqual(healthy.map(() => "0"));
    expect([goaway, session.destroyed]).toEqual([undefined, false]);
  });
});

describe("callers that are not identified", () => {
  it("may have few open calls, with small messages", async () => {
    await listen(undefined, undefined, { access });
    const session = await attack();
    const watching = Array.from({ length: 150 }, () => begin(session, "/grpc.health.v1.Health/Watch"));
    for (const { stream } of watching) stream.resume().end(framed(new Uint8Array()));
    await expect.poll(() => watching.filter((call) => call.status === "14").length, patience).toBe(50);
    const another = await attack();
    const large = begin(another, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    large.stream.resume().write(halfMessage.subarray(0, 10));
    await expect.poll(() => [large.status, large.code], patience).toEqual(["8", "body_too_large"]);
    await settled(() => 0);
  });

  it("are cut off when they call too often, and identified callers are not", async () => {
    const metrics = createMetrics({ version: "0", sources: { generation: () => 1 } });
    await listen(undefined, undefined, { access, metrics });
    const session = await attack();
    const goaway = new Promise<number>((resolve) => session.once("goaway", resolve));
    const calls = Array.from({ length: 1_500 }, () => begin(session, path("Check")));
    for (const { stream } of calls) stream.resume().end();
    expect(await goaway).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(await metrics.render()).toContain(
      'sluice_connections_turned_away_total{protocol="grpc",reason="too_many_calls"} 1\n',
    );
    const client = honest();
    const many = Array.from({ length: 1_500 }, () => client.call(service, "check", request, { token: "good" }));
    expect((await Promise.all(many)).every(({ allowed }) => allowed)).toBe(true);
  });

  it("leave room for identified callers, whatever they hold", async () => {
    const held = { perConnection: mebibyte, knownCallers: 8 * mebibyte, unknownCallers: mebibyte };
    await listen(undefined, { held }, { access });
    const known = honest();
    await known.call(service, "check", request, { token: "good" });
    let closed = 0;
    for (let i = 0; i < 10; i++) {
      const session = await attack();
      session.once("close", () => (closed += 1));
      for (let j = 0; j < 90; j++)
        begin(session, "/grpc.health.v1.Health/Watch").stream.resume().end(framed(new Uint8Array()));
    }
    await expect.poll(() => closed, patience).toBeGreaterThanOrEqual(5);
    expect(await known.call(service, "check", request, { token: "good" })).toMatchObject({ allowed: true });
    expect(await honest().call(health, "check", { service: "" })).toMatchObject({ status: 1 });
  });
});

describe("messages that grow", () => {
  it("by decompression count with their largest possible size", async () => {
    const counters = createGatedCounters();
    await listen(counters);
    const grown = watchBuffers();
    const session = await attack();
    const bomb = framed(gzipSync(new Uint8Array(mebibyte)), true);
    const streams = Array.from({ length: 20 }, () => begin(session, path("CheckStream"), { "grpc-encoding": "gzip" }));
    for (const { stream } of streams) {
      // The server pauses the stream until this batch is decided, which is after the test.
      stream.resume().write(createBatch(600));
      for (let times = 0; times < 14; times++) stream.write(bomb);
    }
    await expect.poll(() => counters.taken, patience).toBeGreaterThan(0);
    const client = honest();
    let last = -1;
    for (let same = 0; same < 30; ) {
      await client.call(health, "check", { service: "" });
      const now = Math.round(process.memoryUsage().arrayBuffers / mebibyte);
      same = now === last ? same + 1 : 0;
      last = now;
    }
    await expect.poll(grown, patience).toBeLessThan(100 * mebibyte);
    counters.open();
  });

  it("above 1 MiB end at their first bytes", async () => {
    await listen();
    const session = await attack();
    for (const method of ["Check", "CheckStream"]) {
      const call = begin(session, path(method));
      const head = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]);
      call.stream.resume().write(head);
      await expect.poll(() => [call.status, call.code, call.closed], patience).toEqual(["8", "body_too_large", true]);
    }
  });
});

describe("bodies that never end", () => {
  it("are not read where there is no such method, or no gRPC", async () => {
    await listen();
    const session = await attack();
    for (const call of [
      begin(session, "/nowhere.Nothing/Check"),
      begin(session, path("Check"), { "content-type": "application/json" }),
    ]) {
      call.stream.resume().write(Buffer.alloc(256 * 1024));
      await expect.poll(() => call.closed, patience).toBe(true);
    }
    await settled(() => 0);
  });

  it("are not read after an answer", async () => {
    await listen();
    const session = await attack();
    const call = begin(session, path("Check"));
    call.stream.resume().write(Buffer.concat([createBatch(1), createBatch(1)]));
    await expect.poll(() => call.status, patience).toBe(String(status.UNIMPLEMENTED));
    for (let sent = 0; sent < 50 && !call.closed; sent++)
      await new Promise<void>((resolve) => {
        if (call.stream.writable) call.stream.write(Buffer.alloc(64 * 1024), () => setImmediate(resolve));
        else setImmediate(resolve);
      });
    await expect.poll(() => call.closed, patience).toBe(true);
  });
});

describe("headers", () => {
  it("above 16 KiB are refused, and the connection goes on", async () => {
    await listen();
    const session = await attack();
    const call = begin(session, path("Check"), { "x-large": "y".repeat(20_000) });
    call.stream.resume().end(framed(CheckRequest.encode(request).finish()));
    await expect.poll(() => call.closed, patience).toBe(true);
    expect(call.status).not.toBe("0");
    const next = begin(session, path("Check"));
    next.stream.resume().end(framed(CheckRequest.encode(request).finish()));
    await expect.poll(() => next.status, patience).toBe("0");
  });
});
