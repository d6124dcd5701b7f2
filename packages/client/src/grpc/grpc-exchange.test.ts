import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import {
  type ChargeRequest,
  type ChargeResponse,
  type CheckBatchRequest,
  type CheckBatchResponse,
  type CheckResult,
  Decision,
  grpcService,
  type LeaseRequest,
  type LeaseResponse,
  RateLimiterDefinition,
} from "@sluice/protocol";
import { afterEach, describe, expect, it } from "vitest";
import type { SentQuestion } from "../exchange.ts";
import { parseAddresses } from "../parse-addresses.ts";
import type { ConnectOptions } from "../remote-limiter.ts";
import { GrpcExchange } from "./grpc-exchange.ts";

type ChargeCall = ServerUnaryCall<ChargeRequest, ChargeResponse>;
type Stream = ServerDuplexStream<CheckBatchRequest, CheckBatchResponse>;

let server: Server | undefined;
let exchange: GrpcExchange | undefined;
afterEach(() => {
  exchange?.close();
  server?.forceShutdown();
});

/** A server whose stream a test scripts, and an open exchange with it. */
async function setUp(
  onBatch: (stream: Stream, batch: CheckBatchRequest) => void,
  options: ConnectOptions = {},
  onCharge: (call: ChargeCall, answer: sendUnaryData<ChargeResponse>) => void = () => undefined,
) {
  const started = new Server();
  server = started;
  const { checkStream, charge } = grpcService(RateLimiterDefinition);
  started.register(charge.path, onCharge, charge.responseSerialize, charge.requestDeserialize, "unary");
  const streams: Stream[] = [];
  started.register(
    checkStream.path,
    (stream: Stream) => {
      streams.push(stream);
      stream.on("data", (batch: CheckBatchRequest) => onBatch(stream, batch));
      // A stalled server does not even do that.
      stream.on("end", () => stream.metadata.get("authorization")[0] !== "Bearer still" && stream.end());
      stream.on("error", () => undefined);
    },
    checkStream.responseSerialize,
    checkStream.requestDeserialize,
    "bidi",
  );
  const port = await new Promise<number>((resolve, reject) =>
    started.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const ends: string[] = [];
  const [address] = parseAddresses(`grpc://127.0.0.1:${port}`, ["grpc"]);
  const made = new GrpcExchange(address!, options, { onEnd: (why) => ends.push(why) });
  exchange = made;
  await made.open(15_000);
  return { exchange: made, streams, ends };
}

const checks = (...users: readonly string[]): readonly SentQuestion[] =>
  users.map((user) => ({ question: { kind: "check", request: { dimensions: { user } } }, withinMs: 50 }));

const allowed: CheckResult = { decision: Decision.create({ allowed: true, remaining: 7 }), error: undefined };

describe("a stream of checks", () => {
  it("finds answers by their sequence, in whatever order they come", async () => {
    const held: CheckBatchRequest[] = [];
    const { exchange } = await setUp((stream, batch) => {
      held.push(batch);
      if (held.length < 2) return;
      for (const { sequence, checks: asked } of held.reverse()) {
        const remaining = Number(asked[0]!.dimensions.user);
        stream.write({ sequence, results: [{ decision: Decision.create({ remaining }), error: undefined }] });
      }
    });
    const sendings = [exchange.send("check", checks("1")), exchange.send("check", checks("2"))];
    const replies = (await Promise.all(sendings.map((one) => one.replies))).flat();
    expect(replies).toMatchObject([{ value: { remaining: 1 } }, { value: { remaining: 2 } }]);
  });

  it("is one for many batches, and carries the shortest deadline and the token", async () => {
    const deadlines: number[] = [];
    const { exchange, streams } = await setUp(
      (stream, { sequence, deadlineMs }) => {
        deadlines.push(deadlineMs);
        stream.write({ sequence, results: [allowed, allowed] });
      },
      { token: "t0ken" },
    );
    const [first] = checks("a");
    for (let i = 0; i < 3; i++) await exchange.send("check", [first!, { ...first!, withinMs: 20 }]).replies;
    expect([streams.length, deadlines]).toEqual([1, [20, 20, 20]]);
    expect(streams[0]!.metadata.get("authorization")).toEqual(["Bearer t0ken"]);
  });

  it("that the server ends normally has decided nothing that it did not answer", async () => {
    const { exchange, ends } = await setUp((stream, { sequence }) => {
      if (sequence === 1) stream.write({ sequence, results: [allowed] });
      else stream.end();
    });
    const sendings = [exchange.send("check", checks("a")), exchange.send("check", checks("b"))];
    expect(await sendings[0]!.replies).toMatchObject([{ kind: "answer" }]);
    await expect(sendings[1]!.replies).rejects.toMatchObject({ because: "not_asked" });
    expect(ends).toEqual(["the server ended the stream"]);
  });

  it.each([
    ["without a code of Sluice's may have decided everything", status.UNAVAILABLE, undefined, "lost"],
    ["because it is stopping has decided nothing", status.UNAVAILABLE, "not_ready", "not_asked"],
    ["because it is overloaded has decided nothing", status.UNAVAILABLE, "overloaded", "not_asked"],
    ["because of an internal error may have decided everything", status.INTERNAL, "internal", "lost"],
  ] as const)("that the server ends %s", async (_, code, told, because) => {
    const { exchange, ends } = await setUp((stream) => {
      const metadata = new Metadata();
      if (told !== undefined) metadata.set("sluice-code", told);
      stream.emit("error", { code, details: "told", metadata });
    });
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because });
    expect(ends).toHaveLength(1);
  });

  it("that is refused is reported to the caller, and does not end the connection", async () => {
    const { exchange, ends } = await setUp((stream) => {
      const metadata = new Metadata();
      metadata.set("sluice-code", "unauthenticated");
      stream.emit("error", { code: status.UNAUTHENTICATED, details: "who?", metadata });
    });
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({
      because: "refused",
      refusal: { code: "unauthenticated", message: "who?" },
    });
    expect(ends).toEqual([]);
  });

  it("that is cut may have decided everything", async () => {
    const { exchange, ends } = await setUp(() => server?.forceShutdown());
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because: "lost" });
    expect(ends).toHaveLength(1);
  });

  it("is ended when it is idle, and started again on use", async () => {
    const { exchange, streams, ends } = await setUp((stream, { sequence }) => {
      stream.write({ sequence, results: [allowed] });
    });
    await exchange.send("check", checks("a")).replies;
    await expect.poll(() => streams[0]!.writableEnded, { timeout: 30_000, interval: 10 }).toBe(true);
    expect(await exchange.send("check", checks("b")).replies).toMatchObject([{ value: { remaining: 7 } }]);
    expect([streams.length, ends]).toEqual([2, []]);
  });

  it("is given up if the server does not end it as well, so that the process can end", async () => {
    const { exchange, streams, ends } = await setUp(
      (stream, { sequence }) => void stream.write({ sequence, results: [allowed] }),
      { token: "still" },
    );
    await exchange.send("check", checks("a")).replies;
    await expect.poll(() => streams[0]!.cancelled, { timeout: 30_000, interval: 10 }).toBe(true);
    expect(ends).toEqual([]);
  });

  it("that the server does not accept has decided nothing", async () => {
    const refusing = createServer();
    refusing.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      if (headers[":path"] !== "/grpc.health.v1.Health/Check") return stream.close(0x7);
      stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": 12 }, { endStream: true });
    });
    await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
    const [address] = parseAddresses(`grpc://127.0.0.1:${(refusing.address() as AddressInfo).port}`, ["grpc"]);
    const refused = new GrpcExchange(address!, {}, { onEnd: () => undefined });
    try {
      await refused.open(15_000);
      await expect(refused.send("check", checks("a")).replies).rejects.toMatchObject({ because: "not_asked" });
    } finally {
      refused.close();
      refusing.close();
    }
  });

  it("has failed if an answer has neither a decision nor an error", async () => {
    const { exchange } = await setUp((stream, { sequence }) => {
      stream.write({ sequence, results: [{ decision: undefined, error: undefined }] });
    });
    expect(await exchange.send("check", checks("a")).replies).toEqual([
      { kind: "failed", reason: "storage_unavailable" },
    ]);
  });
});

describe("an exchange over gRPC", () => {
  it("does not carry out questions that were sent while it was closed", async () => {
    const { exchange } = await setUp(() => undefined);
    exchange.close();
    await expect(exchange.send("check", checks("a")).replies).rejects.toMatchObject({ because: "not_asked" });
  });

  it("does not open if no server listens, and says why", async () => {
    const { exchange } = await setUp(() => undefined);
    server?.forceShutdown();
    await expect(exchange.open(15_000)).rejects.toMatchObject({
      because: "not_asked",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  const lease: SentQuestion = {
    question: {
      kind: "lease",
      request: { dimensions: { user: "ada" }, policies: ["api"] },
      want: 40,
      settled: { epoch: 7, spent: 1, kept: 2, returned: 3 },
    },
    withinMs: 50,
  };

  function answerLeases(answer: (request: LeaseRequest, send: sendUnaryData<LeaseResponse>) => void): void {
    const { path, responseSerialize, requestDeserialize } = grpcService(RateLimiterDefinition).lease;
    server!.register(
      path,
      (call: ServerUnaryCall<LeaseRequest, LeaseResponse>, send: sendUnaryData<LeaseResponse>) =>
        answer(call.request, send),
      responseSerialize,
      requestDeserialize,
      "unary",
    );
  }

  it("asks for a lease, and receives the grant", async () => {
    const { exchange } = await setUp(() => undefined);
    const asked: LeaseRequest[] = [];
    answerLeases((request, send) => {
      asked.push(request);
      const decision = Decision.create({ allowed: true, remaining: 9 });
      send(null, { granted: 40, epoch: 8, unspent: 41, forgotten: 3, leaseMs: 5, staleMs: 6, cost: 2, decision });
    });
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([
      {
        kind: "answer",
        value: { granted: 40, epoch: 8, forgotten: 3, leaseMs: 5, staleMs: 6, cost: 2, decision: { remaining: 9 } },
      },
    ]);
    expect(asked).toMatchObject([
      {
        check: { dimensions: { user: "ada" }, policies: ["api"] },
        want: 40,
        holdMs: 0,
        settled: { epoch: 7, spent: 1, kept: 2, returned: 3 },
      },
    ]);
  });

  it("learns from a server without leases that there are none", async () => {
    const { exchange, ends } = await setUp(() => undefined);
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([
      { kind: "refused", error: { code: "not_found" } },
    ]);
    expect(ends).toEqual([]);
  });

  it.each([
    ["not_leasable", { kind: "refused", error: { code: "not_leasable" } }],
    ["not_ready", { kind: "elsewhere" }],
    ["store_unavailable", { kind: "failed" }],
  ])("does not blame a server for an unavailable lease: %s", async (told, reply) => {
    const { exchange } = await setUp(() => undefined);
    answerLeases((_request, send) => {
      const metadata = new Metadata();
      metadata.set("sluice-code", told);
      send({ code: status.UNAVAILABLE, details: "told", metadata });
    });
    expect(await exchange.send("lease", [lease]).replies).toMatchObject([reply]);
  });

  const charge: SentQuestion = { question: { kind: "charge", request: { cost: 2 } }, withinMs: 50 };

  it("has no deadline for calls other than checks, and ends them on close", async () => {
    const calls: ChargeCall[] = [];
    const { exchange } = await setUp(
      () => undefined,
      {},
      (call) => calls.push(call),
    );
    const failed = expect(exchange.send("charge", [charge]).replies).rejects.toMatchObject({ because: "lost" });
    await expect.poll(() => calls.length, { timeout: 30_000, interval: 5 }).toBe(1);
    expect([calls[0]!.request.cost, calls[0]!.getDeadline()]).toEqual([2, Number.POSITIVE_INFINITY]);
    exchange.close();
    await failed;
    await expect.poll(() => calls[0]!.cancelled, { timeout: 30_000, interval: 5 }).toBe(true);
  });

  it("receives answers to other calls even if it has another connection by then", async () => {
    const answers: sendUnaryData<ChargeResponse>[] = [];
    const { exchange } = await setUp(
      () => undefined,
      {},
      (_call, answer) => answers.push(answer),
    );
    const { replies } = exchange.send("charge", [charge]);
    await expect.poll(() => answers.length, { timeout: 30_000, interval: 5 }).toBe(1);
    await exchange.open(15_000);
    answers[0]!(null, {});
    expect(await replies).toEqual([{ kind: "answer", value: undefined }]);
  });

  it.each([
    ["overloaded", { kind: "elsewhere", reason: "storage_overloaded" }],
    ["permission_denied", { kind: "refused" }],
  ] as const)("passes on a server's answer to other calls: %s", async (told, reply) => {
    const { exchange, ends } = await setUp(
      () => undefined,
      {},
      (_call, answer) => {
        const metadata = new Metadata();
        metadata.set("sluice-code", told);
        answer({ code: status.UNAVAILABLE, details: "told", metadata });
      },
    );
    expect(await exchange.send("charge", [charge]).replies).toMatchObject([reply]);
    expect(ends).toEqual([]);
  });
});
