import { connect as connectHttp2, constants, type IncomingHttpHeaders, type Settings } from "node:http2";
import { connect, type Socket } from "node:net";
import { type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import {
  ChargeRequest,
  CheckBatchRequest,
  type CheckBatchResponse,
  CheckRequest,
  grpcService,
  RateLimiterDefinition as service,
} from "@sluice/protocol";
import { type CounterStore, createLimiter, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createGatedCounters } from "../../../testing/gated-counters.ts";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";
import type { Access } from "../../access/access.ts";
import { createDecide } from "../../service/create-decide.ts";
import type { ServiceOptions } from "../../service/create-service.ts";
import { maxMessageBytes } from "./server.ts";

let listening: ListeningTransport | undefined;
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

async function open(
  limiter: Limiter = limiterOn(),
  parts: Partial<Omit<ServiceOptions, "limiter">> = {},
): Promise<GrpcTestClient> {
  listening = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter, parts)));
  return another();
}

function another(): GrpcTestClient {
  const client = connectForTest(listening!.address);
  clients.push(client);
  return client;
}

afterEach(async () => {
  for (const client of clients) client.close();
  clients = [];
  await listening?.close();
  listening = undefined;
});

const request = CheckRequest.fromPartial({ dimensions: { user: "ada" } });
const used = async (client: GrpcTestClient): Promise<number> =>
  (await client.call(service, "check", { ...request, preview: true, cost: 0 })).used!;

interface RawAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
}

/** A call by hand, with bytes and headers that no client library would send. */
function callByHand(path: string, body: Uint8Array, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`http://${listening!.address}`);
    session.on("error", reject);
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    let answered: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    stream.on("response", (got) => {
      answered = got;
    });
    stream.on("trailers", (got) => {
      trailers = got;
    });
    stream.on("error", reject);
    stream.on("close", () => {
      session.close();
      resolve({ headers: answered, trailers: "grpc-status" in trailers ? trailers : answered });
    });
    stream.resume();
    stream.end(body);
  });
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/** Until a figure has stayed the same while a few other calls were answered. */
async function settled(figure: () => number, client: GrpcTestClient): Promise<number> {
  let last = -1;
  for (let same = 0; same < 20; ) {
    await client.call(service, "check", { ...request, preview: true });
    same = figure() === last ? same + 1 : 0;
    last = figure();
  }
  return last;
}

describe("deadlines", () => {
  it("answer DEADLINE_EXCEEDED once the caller no longer waits, and charge nothing", async () => {
    const client = await open();
    const body = framed(CheckRequest.encode(request).finish());
    const { trailers } = await callByHand("/sluice.v1.RateLimiter/Check", body, { "grpc-timeout": "1n" });
    expect(trailers["grpc-status"]).toBe(String(status.DEADLINE_EXCEEDED));
    expect(await used(client)).toBe(0);
  });

  it("shorten what the policy says, with room for the way back", async () => {
    const counters = createGatedCounters();
    counters.open();
    const client = await open(limiterOn(counters));
    await client.call(service, "check", request, { deadline: Date.now() + 5_000 });
    await client.call(service, "check", request, { deadline: Date.now() + 10 * 60_000 });
    await client.call(service, "check", request);
    const batch = CheckBatchRequest.fromPartial({ checks: [request], deadlineMs: 700 });
    await client.call(service, "checkBatch", batch, { deadline: Date.now() + 5_000 });
    await client.call(service, "checkBatch", { ...batch, deadlineMs: 50_000 }, { deadline: Date.now() + 5_000 });
    const [short, long, none, ofBatch, ofCall] = counters.options.map((options) => options?.deadlineMs);
    for (const ms of [short, ofCall]) {
      expect(ms).toBeLessThanOrEqual(4_995);
      expect(ms).toBeGreaterThan(0);
    }
    expect([long, none, ofBatch]).toEqual([60_000, undefined, 700]);
  });

  it("of a stream are what is left when a batch comes, not when the stream began", async () => {
    const counters = createGatedCounters();
    counters.open();
    const client = await open(limiterOn(counters));
    const stream = client.stream(service, "checkStream", { deadline: Date.now() + 30_000 });
    const { answers } = listen(stream);
    stream.write(createBatch(1));
    await expect.poll(() => answers.length).toBe(1);
    const firstMs = Date.now();
    await expect.poll(() => Date.now() - firstMs, { interval: 5 }).toBeGreaterThan(20);
    stream.write(createBatch(2));
    await expect.poll(() => answers.length).toBe(2);
    const [first, second] = counters.options.map((options) => options?.deadlineMs);
    expect(first! - second!).toBeGreaterThanOrEqual(20);
    stream.cancel();
  });

  it("refuse a deadline that is none", async () => {
    await open();
    const body = framed(CheckRequest.encode(request).finish());
    const { trailers } = await callByHand("/sluice.v1.RateLimiter/Check", body, { "grpc-timeout": "soon" });
    expect(trailers["grpc-status"]).not.toBe("0");
  });
});

describe("callers that leave", () => {
  it("do no harm, and are counted", async () => {
    const counters = createGatedCounters();
    const limiter = limiterOn(counters);
    const parts = createTestService(limiter);
    const client = await open(limiter, { metrics: parts.metrics });
    const { path, requestSerialize, responseDeserialize } = grpcService(service).check;
    const error = await new Promise<ServiceError>((resolve) => {
      const call = client.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (failed) =>
        resolve(failed!),
      );
      void expect
        .poll(() => counters.taken)
        .toBe(1)
        .then(() => call.cancel());
    });
    expect(error.code).toBe(status.CANCELLED);
    const stream = client.stream(service, "checkStream");
    stream.on("error", () => {});
    stream.write(CheckBatchRequest.fromPartial({ checks: [request] }));
    await expect.poll(() => counters.taken).toBe(2);
    stream.cancel();
    await expect.poll(() => parts.metrics.render()).toMatch(/sluice_grpc\w+\{[^}]*CheckStream[^}]*CANCELLED[^}]*\} 1/);
    counters.open();
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });
});

describe("what is too much, or nothing we know", () => {
  it("refuses a message above 1 MiB", async () => {
    const client = await open();
    const user = "u".repeat(maxMessageBytes);
    const error = await client.fail(service, "check", CheckRequest.fromPartial({ dimensions: { user } }));
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });

  it("refuses messages of nothing but tiny parts, soon", async () => {
    const client = await open();
    const repeated = (...bytes: number[]): Buffer => Buffer.alloc(600_000, Buffer.from(bytes));
    const checks = await callByHand("/sluice.v1.RateLimiter/CheckBatch", framed(repeated(0x12, 0)));
    expect(decodeURI(String(checks.trailers["grpc-message"]))).toContain("but holds 300000");
    const policies = await callByHand("/sluice.v1.RateLimiter/Check", framed(repeated(0x3a, 0)));
    expect(policies.trailers["sluice-code"]).toBe("invalid_request");
    const inner = repeated(0x3a, 0);
    const head = Buffer.from([
      0x12,
      ...[0, 7, 14].map((shift) => ((inner.length >> shift) & 0x7f) | (shift < 14 ? 0x80 : 0)),
    ]);
    const inBatch = await callByHand("/sluice.v1.RateLimiter/CheckBatch", framed(Buffer.concat([head, inner])));
    expect(inBatch.trailers["grpc-status"]).toBe("0");
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });

  it("does not implement what it does not know", async () => {
    const client = await open();
    for (const path of ["/sluice.v1.RateLimiter/Nothing", "/nowhere.Nothing/Check", "/"]) {
      const { trailers } = await callByHand(path, framed(new Uint8Array()));
      expect(trailers["grpc-status"]).toBe(String(status.UNIMPLEMENTED));
    }
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });

  it("refuses other content types", async () => {
    await open();
    const { headers } = await callByHand("/sluice.v1.RateLimiter/Check", new Uint8Array(), {
      "content-type": "application/json",
    });
    expect(headers[":status"]).toBe(415);
  });

  it("calls bytes that are no such message the caller's mistake", async () => {
    const client = await open();
    const unreadable = Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3]);
    for (const path of ["Check", "CheckBatch", "CheckStream", "Charge"]) {
      const { trailers } = await callByHand(`/sluice.v1.RateLimiter/${path}`, framed(unreadable));
      expect([path, trailers["grpc-status"], trailers["sluice-code"]]).toEqual([path, "3", "invalid_request"]);
    }
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });

  it("reads nothing of who may not ask", async () => {
    const access: Access = {
      identify() {
        throw new SluiceError("unauthenticated", "a token is needed");
      },
    };
    const client = await open(limiterOn(), { access });
    const read = vi.spyOn(ChargeRequest, "decode");
    const { code } = await client.fail(service, "charge", ChargeRequest.fromPartial({}));
    expect([code, read.mock.calls.length]).toEqual([status.UNAUTHENTICATED, 0]);
    read.mockRestore();
  });

  it("refuses a dimension that is called __proto__, by its name, as other transports do", async () => {
    const client = await open();
    const name = Buffer.from("__proto__");
    const entry = Buffer.from([0x0a, name.length, ...name, 0x12, 1, 0x78]);
    const dimensions = Buffer.from([0x12, entry.length, ...entry]);
    for (const method of ["Check", "Charge", "CheckAndIncrement", "GetUsage"]) {
      const { trailers } = await callByHand(`/sluice.v1.RateLimiter/${method}`, framed(dimensions));
      expect([method, trailers["sluice-code"]]).toEqual([method, "invalid_request"]);
      expect(decodeURI(String(trailers["grpc-message"]))).toContain("dimensions.__proto__");
    }
    const good = CheckRequest.encode(request).finish();
    const batch = Buffer.from([0x12, dimensions.length, ...dimensions, 0x12, good.length, ...good]);
    const { responseDeserialize } = grpcService(service).checkBatch;
    const { results } = await new Promise<CheckBatchResponse>((resolve, reject) => {
      const path = "/sluice.v1.RateLimiter/CheckBatch";
      client.client.makeUnaryRequest(
        path,
        (bytes: Buffer) => bytes,
        responseDeserialize,
        batch,
        (error, answer) => (error === null ? resolve(answer!) : reject(error)),
      );
    });
    expect(results.map(({ decision, error }) => decision?.allowed ?? error?.fields[0]?.field)).toEqual([
      "dimensions.__proto__",
      true,
    ]);
  });

  it("refuses headers without end", async () => {
    const client = await open();
    const headers = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-${i}`, "y".repeat(500)]));
    await callByHand("/sluice.v1.RateLimiter/Check", framed(new Uint8Array()), headers).then(
      ({ trailers }) => expect(trailers["grpc-status"]).toBeUndefined(),
      (error: unknown) => expect(error).toBeInstanceOf(Error),
    );
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });
});

/** Numbers that are the same in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function randomBytes(random: () => number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

/** Sends bytes and hangs up, or is hung up on. */
function say(bytes: Uint8Array, half = false): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect(listening!.port, "127.0.0.1", () => {
      socket.write(bytes, () => (half ? socket.end() : socket.destroy()));
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.resume();
  });
}

describe("connections", () => {
  it("that say nothing are closed after a while", async () => {
    const service = createTestService(limiterOn());
    listening = await listenForTest("grpc", wholeGrpcServer(service, { silentMs: 20, replyMs: 20 }));
    const socket = connect(listening.port, "127.0.0.1");
    socket.on("error", () => {}).resume();
    await new Promise((resolve) => socket.once("close", resolve));
  });

  it("are told how many streams they may have", async () => {
    await open();
    const session = connectHttp2(`http://${listening!.address}`);
    const settings = await new Promise<Settings>((resolve) => session.once("remoteSettings", resolve));
    expect(settings.maxConcurrentStreams).toBe(5_000);
    session.close();
  });
});

describe("bytes that are no gRPC", () => {
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

  it("do no harm: random ones, alone, behind a preface and inside of messages", async () => {
    const client = await open();
    const random = seeded(20_260_115);
    for (let i = 0; i < 40; i++) {
      const bytes = randomBytes(random, 1 + Math.floor(random() * 2_000));
      await say(bytes);
      await say(Buffer.concat([preface, settings, bytes]));
      const { trailers } = await callByHand("/sluice.v1.RateLimiter/CheckBatch", framed(bytes));
      expect(trailers["grpc-status"]).toMatch(/^(0|3)$/);
      await callByHand("/sluice.v1.RateLimiter/Check", bytes).catch(() => {});
    }
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });

  it("do no harm: frames cut off anywhere, half-closed connections, HTTP/1.1", async () => {
    const client = await open();
    const whole = framed(CheckRequest.encode(request).finish());
    for (let cut = 0; cut < whole.length; cut += 3)
      await callByHand("/sluice.v1.RateLimiter/Check", whole.subarray(0, cut)).catch(() => {});
    for (const bytes of [preface.subarray(0, 10), preface, Buffer.concat([preface, settings.subarray(0, 5)])])
      await say(bytes, true);
    await say(Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true);
    await say(new Uint8Array([1]), true);
    expect(await used(client)).toBe(0);
    expect(await client.call(service, "check", request)).toMatchObject({ allowed: true });
  });
});

const createBatch = (sequence: number, checks = 1): CheckBatchRequest => ({
  sequence,
  checks: Array.from({ length: checks }, () => request),
  deadlineMs: 0,
});

/** Everything a stream says, until it ends. */
function listen(stream: ReturnType<typeof openStream>): {
  readonly answers: CheckBatchResponse[];
  readonly ended: Promise<StatusObject>;
} {
  const answers: CheckBatchResponse[] = [];
  const ended = new Promise<StatusObject>((resolve) => {
    stream.on("status", resolve);
    stream.on("error", () => {});
  });
  stream.on("data", (answer: CheckBatchResponse) => answers.push(answer));
  return { answers, ended };
}

function openStream(client: GrpcTestClient) {
  return client.stream(service, "checkStream");
}

describe("CheckStream", () => {
  it("answers every batch with its sequence, and ends when the caller does", async () => {
    const client = await open();
    const stream = openStream(client);
    const { answers, ended } = listen(stream);
    for (let sequence = 1; sequence <= 300; sequence++) stream.write(createBatch(sequence, 3));
    stream.end();
    expect((await ended).code).toBe(status.OK);
    expect(answers.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
    expect(answers.every(({ results }) => results.length === 3 && results[2]!.decision!.allowed)).toBe(true);
    expect(await used(client)).toBe(900);
  });

  it("ends with INVALID_ARGUMENT at a batch that is none, after the answers before it", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const stream = openStream(client);
    const { answers, ended } = listen(stream);
    stream.write(createBatch(1));
    stream.write(createBatch(2));
    stream.write(createBatch(3, 0));
    stream.write(createBatch(4));
    await expect.poll(() => counters.taken).toBe(2);
    counters.open();
    const { code, details } = await ended;
    expect([code, details]).toEqual([status.INVALID_ARGUMENT, "checks must hold 1 to 1000 entries, but holds 0"]);
    expect(answers.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(counters.taken).toBe(2);
  });

  it("reads no more while its answers are not taken, on however many streams, and loses none", async () => {
    const limiter = limiterOn();
    const metrics = createTestService(limiter).metrics;
    let decided = 0;
    const decide = createDecide({ limiter, metrics, observe: (_, { preview }) => (decided += preview ? 0 : 1) });
    await open(limiter, { decide });
    // By hand, because grpc-js takes answers that were not asked for.
    const session = connectHttp2(`http://${listening!.address}`, { settings: { initialWindowSize: 0 } });
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const batch = framed(CheckBatchRequest.encode(createBatch(1, 1_000)).finish());
    const streams = 20;
    const batches = 10;
    const bytesOfAnswers = Array.from(
      { length: streams },
      () =>
        new Promise<number>((resolve, reject) => {
          const stream = session.request({
            ":method": "POST",
            ":path": "/sluice.v1.RateLimiter/CheckStream",
            "content-type": "application/grpc",
            te: "trailers",
          });
          let bytes = 0;
          stream.on("error", reject);
          stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
          stream.on("end", () => resolve(bytes));
          for (let times = 0; times < batches; times++) stream.write(batch);
          stream.end();
        }),
    );
    await expect.poll(() => decided, { timeout: 30_000 }).toBeGreaterThanOrEqual(streams * 1_000);
    expect(await settled(() => decided, another())).toBe(streams * 1_000);
    session.settings({ initialWindowSize: 1024 * 1024 });
    const bytes = await Promise.all(bytesOfAnswers);
    expect(decided).toBe(streams * batches * 1_000);
    expect(Math.min(...bytes)).toBeGreaterThan(batches * 1_000 * 50);
    session.close();
  });

  it("reads no more while its answers are not taken, also where counters are elsewhere", async () => {
    const counters = createGatedCounters();
    counters.open();
    await open(limiterOn(counters));
    const session = connectHttp2(`http://${listening!.address}`, { settings: { initialWindowSize: 0 } });
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const stream = session.request({
      ":method": "POST",
      ":path": "/sluice.v1.RateLimiter/CheckStream",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("error", () => {});
    const batch = framed(CheckBatchRequest.encode(createBatch(1, 100)).finish());
    for (let times = 0; times < 150; times++) stream.write(batch);
    await expect.poll(() => counters.taken, { timeout: 30_000 }).toBeGreaterThanOrEqual(400);
    // What is in flight when answers begin to pile up is all that is still decided.
    expect(await settled(() => counters.taken, another())).toBeLessThanOrEqual(50 * 100);
    session.destroy();
  });

  it("reads no more while many checks wait for counters", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const stream = openStream(client);
    const { answers, ended } = listen(stream);
    for (let sequence = 1; sequence <= 600; sequence++) stream.write(createBatch(sequence));
    stream.end();
    await expect.poll(() => counters.taken).toBeGreaterThanOrEqual(512);
    expect(await settled(() => counters.taken, another())).toBe(512);
    counters.open();
    expect((await ended).code).toBe(status.OK);
    expect(answers.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 600 }, (_, i) => i + 1),
    );
  });

  it("divides what may wait among streams, so that who floods takes nothing from others, and answers all of them", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const send = (batches: number, checks: number): ReturnType<typeof listen> => {
      const stream = openStream(client);
      const heard = listen(stream);
      for (let sequence = 1; sequence <= batches; sequence++) stream.write(createBatch(sequence, checks));
      stream.end();
      return heard;
    };
    const floods = [send(20, 100), send(20, 100), send(20, 100)];
    await expect.poll(() => counters.taken).toBeGreaterThanOrEqual(512);
    // All of the room and a part of a batch, then a half of it, then a third.
    const flooded = await settled(() => counters.taken, another());
    expect(flooded).toBeLessThanOrEqual(600 + 300 + 200);
    const quiet = send(5, 10);
    await expect.poll(() => counters.taken).toBe(flooded + 50);
    counters.open();
    for (const [{ answers, ended }, batches] of [...floods.map((one) => [one, 20] as const), [quiet, 5] as const]) {
      expect((await ended).code).toBe(status.OK);
      expect(answers.map(({ sequence }) => sequence).sort((one, other) => one - other)).toEqual(
        Array.from({ length: batches }, (_, i) => i + 1),
      );
    }
    expect(counters.taken).toBe(3 * 20 * 100 + 50);
  });
});

describe("draining", () => {
  it("answers what was asked, ends streams in order, and cuts no client off", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const stream = openStream(client);
    const { answers, ended } = listen(stream);
    stream.write(createBatch(1, 2));
    const unary = another().call(service, "check", request);
    await expect.poll(() => counters.taken).toBe(3);
    const drained = listening!.close(20_000);
    counters.open();
    expect(await unary).toMatchObject({ allowed: true });
    expect((await ended).code).toBe(status.OK);
    expect(answers.map(({ results }) => results.length)).toEqual([2]);
    expect(await drained).toBe(0);
  });

  it("decides nothing that comes over a stream after its end", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const stream = openStream(client);
    const { answers, ended } = listen(stream);
    stream.write(createBatch(1));
    await expect.poll(() => counters.taken).toBe(1);
    const drained = listening!.close(20_000);
    for (let sequence = 2; sequence < 50; sequence++) stream.write(createBatch(sequence));
    counters.open();
    expect((await ended).code).toBe(status.OK);
    expect(await drained).toBe(0);
    expect(answers.length).toBe(counters.taken);
  });

  it("closes connections that are idle", async () => {
    const client = await open();
    await client.call(service, "check", request);
    expect(await listening!.close(20_000)).toBe(0);
  });

  it("cuts off what does not finish, and counts it", async () => {
    const counters = createGatedCounters();
    const client = await open(limiterOn(counters));
    const stuck = client.fail(service, "check", request);
    await expect.poll(() => counters.taken).toBe(1);
    expect(await listening!.close(10)).toBe(1);
    expect((await stuck).code).toBe(status.UNAVAILABLE);
    counters.open();
  });

  it("closes connections that never said a word", async () => {
    await open();
    const socket = connect(listening!.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {});
    socket.resume();
    await listening!.close(10);
    await closed;
  });

  it("sends GOAWAY", async () => {
    const client = await open();
    await client.call(service, "check", request);
    const session = connectHttp2(`http://${listening!.address}`);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const told = new Promise<number>((resolve) => session.once("goaway", resolve));
    void listening!.close(20_000);
    expect(await told).toBe(constants.NGHTTP2_NO_ERROR);
    session.close();
  });
});
