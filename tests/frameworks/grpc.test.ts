import { type EventEmitter, once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import {
  Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import manifest from "@grpc/grpc-js/package.json" with { type: "json" };
import {
  findTicket,
  type GrpcCall,
  type GrpcRateLimitOptions,
  type Limits,
  rateLimit,
  type SentCall,
} from "@sluice/middleware/grpc";
import { RedisCounters } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import protobuf from "protobufjs";
import { createLimiter, type Decision, limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";

const { version } = manifest;
const encode = (text: string): Buffer => Buffer.from(text);
const decode = (bytes: Buffer): string => bytes.toString();
const soon = { timeout: 30_000, interval: 20 };

function method(name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<string, string> {
  return {
    path: `/test.Echo/${name}`,
    requestStream,
    responseStream,
    requestSerialize: encode,
    requestDeserialize: decode,
    responseSerialize: encode,
    responseDeserialize: decode,
  };
}

const echo = {
  Unary: method("Unary", false, false),
  ClientStream: method("ClientStream", true, false),
  ServerStream: method("ServerStream", false, true),
  Bidi: method("Bidi", true, true),
};
type Kind = keyof typeof echo;
const kinds = Object.keys(echo) as Kind[];

/** Every handler notes that it ran. `broken` fails, `charged` charges 5, `stuck` never ends; the rest is echoed. */
function handlers(ran: string[]) {
  // One for all calls, as careless handlers have it.
  const shared = new Metadata();
  shared.set("x-own", "handler");
  shared.set("x-ratelimit-scope", "handler");
  return {
    Unary: (call: ServerUnaryCall<string, string>, answer: sendUnaryData<string>): void => {
      ran.push(`Unary ${call.request}`);
      if (call.request === "broken") {
        answer({ code: status.NOT_FOUND, details: "nothing there" });
      } else if (call.request === "charged") {
        const ticket = findTicket(call)!;
        void ticket.charge(5).then(() => answer(null, String(ticket.decision.remaining)));
      } else if (call.request === "own") {
        call.sendMetadata(shared);
        answer(null, "own");
      } else if (call.request !== "stuck") answer(null, call.request);
    },
    ClientStream: (call: ServerReadableStream<string, string>, answer: sendUnaryData<string>): void => {
      ran.push("ClientStream");
      let all = "";
      call.on("data", (message: string) => {
        all += message;
      });
      call.on("end", () => answer(null, all));
    },
    ServerStream: (call: ServerWritableStream<string, string>): void => {
      ran.push(`ServerStream ${call.request}`);
      if (call.request !== "silent") for (const letter of call.request) call.write(letter);
      call.end();
    },
    Bidi: (call: ServerDuplexStream<string, string>): void => {
      ran.push("Bidi");
      call.on("data", (message: string) => call.write(message));
      call.on("end", () => call.end());
    },
  };
}

interface Running {
  readonly address: string;
  readonly client: Client;
  /** Which handlers ran, in order. */
  readonly ran: readonly string[];
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(
  limits: Limits,
  options?: GrpcRateLimitOptions,
  outer: readonly ServerInterceptor[] = [],
): Promise<Running> {
  const server = new Server({ interceptors: [...outer, rateLimit(limits, options)] });
  const ran: string[] = [];
  server.addService(echo, handlers(ran));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  closing.push(
    () => server.forceShutdown(),
    () => client.close(),
  );
  return { address: `127.0.0.1:${port}`, client, ran };
}

interface Ended {
  readonly code: number;
  readonly details: string;
  readonly messages: readonly string[];
  /** Undefined if the answer was a status alone. */
  readonly initial: Readonly<Record<string, unknown>> | undefined;
  readonly trailers: Readonly<Record<string, unknown>>;
}

function metadataFrom(fields: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  return metadata;
}

type Calling = ClientUnaryCall | ClientReadableStream<string>;

/** Begins a call of the kind, by the client's own function for it. `messages` are sent, and the sending ended. */
function begin(
  { client }: Running,
  kind: Kind,
  messages: readonly string[],
  fields: Readonly<Record<string, string>>,
): { readonly call: Calling; readonly answered: string[] } {
  const { path } = echo[kind];
  const metadata = metadataFrom(fields);
  const answered: string[] = [];
  // A status follows in either case, and says the same.
  const answer: sendUnaryData<string> = (_error, message) => {
    if (message !== undefined && message !== null) answered.push(message);
  };
  const collect = <Stream extends ClientReadableStream<string>>(stream: Stream): Stream => {
    stream.on("data", (message: string) => answered.push(message));
    stream.on("error", () => {});
    return stream;
  };
  switch (kind) {
    case "Unary":
      return { call: client.makeUnaryRequest(path, encode, decode, messages.join(""), metadata, answer), answered };
    case "ServerStream":
      return {
        call: collect(client.makeServerStreamRequest(path, encode, decode, messages.join(""), metadata)),
        answered,
      };
    case "ClientStream": {
      const call = client.makeClientStreamRequest(path, encode, decode, metadata, answer);
      for (const message of messages) call.write(message);
      call.end();
      return { call, answered };
    }
    case "Bidi": {
      const call = collect(client.makeBidiStreamRequest(path, encode, decode, metadata));
      for (const message of messages) call.write(message);
      call.end();
      return { call, answered };
    }
  }
}

function readStatus(call: EventEmitter): Promise<StatusObject> {
  return new Promise((resolve) => call.once("status", resolve));
}

async function ask(
  running: Running,
  kind: Kind = "Unary",
  messages: readonly string[] = ["a", "b", "c"],
  fields: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { call, answered } = begin(running, kind, messages, fields);
  let initial: Metadata | undefined;
  call.on("metadata", (metadata: Metadata) => {
    initial = metadata;
  });
  const { code, details, metadata } = await readStatus(call);
  return { code, details, messages: answered, initial: initial?.getMap(), trailers: metadata.getMap() };
}

async function readCodes(asking: readonly Promise<Ended>[]): Promise<number[]> {
  return (await Promise.all(asking)).map(({ code }) => code);
}

/** Something that a test waits for, or lets others wait for. */
function createEvent<Value>(): { readonly happened: Promise<Value>; readonly happens: (value: Value) => void } {
  let happens: (value: Value) => void = () => {};
  const happened = new Promise<Value>((resolve) => {
    happens = resolve;
  });
  return { happened, happens };
}

const user = ({ metadata }: GrpcCall): string | undefined => metadata.get("x-user")[0]?.toString();
const as = (running: Running, name: string): Promise<Ended> => ask(running, "Unary", ["a"], { "x-user": name });

/** A call written by hand, from an address of the client's choice. */
async function askFrom(address: string, from: string, fields: IncomingHttpHeaders = {}): Promise<IncomingHttpHeaders> {
  const [host, port] = address.split(":") as [string, string];
  const session = connectHttp2(`http://${address}`, {
    createConnection: () => connect({ host, port: Number(port), localAddress: from }),
  });
  const stream = session.request({
    ...fields,
    ":method": "POST",
    ":path": echo.Unary.path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  const seen: IncomingHttpHeaders = {};
  stream.on("response", (headers) => Object.assign(seen, headers));
  stream.on("trailers", (headers) => Object.assign(seen, headers));
  stream.resume();
  stream.end(Buffer.from([0, 0, 0, 0, 1, 0x61]));
  await once(stream, "close");
  session.close();
  return seen;
}

const { root } = protobuf.parse(
  `syntax = "proto3";
   message Any { string type_url = 1; bytes value = 2; }
   message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
   message Duration { int64 seconds = 1; int32 nanos = 2; }
   message RetryInfo { Duration retry_delay = 1; }`,
  { keepCase: true },
);

/** `google.rpc.Status`, with the names of its details and the wait of `RetryInfo`. */
function decodeDetails({ trailers }: Ended) {
  const read = (type: string, bytes: Uint8Array): Record<string, unknown> => {
    const found = root.lookupType(type);
    return found.toObject(found.decode(bytes), { longs: Number });
  };
  const { code, message, details } = read("Status", trailers["grpc-status-details-bin"] as Buffer) as {
    code: number;
    message: string;
    details: { type_url: string; value: Uint8Array }[];
  };
  const retry = details.find(({ type_url }) => type_url === "type.googleapis.com/google.rpc.RetryInfo");
  const { seconds, nanos } = (retry === undefined ? {} : read("RetryInfo", retry.value).retry_delay) as {
    seconds?: number;
    nanos?: number;
  };
  return {
    code,
    message,
    details: details.map(({ type_url }) => type_url.split(".").at(-1)),
    waitMs: seconds === undefined ? undefined : seconds * 1000 + (nanos ?? 0) / 1_000_000,
  };
}

describe(`gRPC ${version}: refusing`, () => {
  it.each(kinds)("lets in what a limit allows and refuses the rest before the handler sees it: %s", async (kind) => {
    const running = await start("2/h");
    for (const remaining of ["1", "0"]) {
      const passed = await ask(running, kind);
      expect(passed.code).toBe(status.OK);
      expect(passed.messages.join("")).toBe("abc");
      expect(passed.initial).toMatchObject({
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": remaining,
        "ratelimit-policy": '"limit/ip";q=2;w=3600',
      });
      expect(passed.trailers).toEqual({});
    }
    const refused = await ask(running, kind);
    expect(refused.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(refused.details).toContain("Policy limit, limit ip, allows 2 per hour");
    expect(refused.messages).toEqual([]);
    expect(running.ran).toHaveLength(2);
  });

  it("says how long to wait as gRPC clients read it, and in the headers", async () => {
    let decision: Decision | undefined;
    const running = await start("1/h", {
      onDecision: (one) => {
        decision = one;
      },
    });
    await ask(running);
    const refused = await ask(running);
    const details = decodeDetails(refused);
    expect(details).toEqual({
      code: status.RESOURCE_EXHAUSTED,
      message: refused.details,
      details: ["RetryInfo", "QuotaFailure"],
      waitMs: decision!.retryAfterMs,
    });
    expect(Number(refused.trailers["retry-after"])).toBeGreaterThanOrEqual(decision!.retryAfterMs! / 1000);
    expect(refused.trailers).toMatchObject({ "x-ratelimit-limit": "1", "x-ratelimit-remaining": "0" });
    // A status alone: clients may retry by their own policies.
    expect(refused.initial).toBeUndefined();
  });

  it("stays gRPC on the wire", async () => {
    const { address } = await start("1/h");
    expect(await askFrom(address, "127.0.0.1")).toMatchObject({ ":status": 200, "grpc-status": "0" });
    const refused = await askFrom(address, "127.0.0.1");
    expect(refused).toMatchObject({ ":status": 200, "grpc-status": "8" });
    expect(refused["content-type"]).toMatch(/^application\/grpc/);
    expect(refused["cache-control"]).toBeUndefined();
  });

  it("refuses a stream whose end never comes", async () => {
    const running = await start("1/h");
    await ask(running);
    for (const kind of ["ClientStream", "Bidi"] as const) {
      const { path } = echo[kind];
      const call =
        kind === "Bidi"
          ? running.client.makeBidiStreamRequest(path, encode, decode)
          : running.client.makeClientStreamRequest(path, encode, decode, () => {});
      call.on("error", () => {});
      call.write("begin");
      expect((await readStatus(call)).code).toBe(status.RESOURCE_EXHAUSTED);
    }
    expect(running.ran).toEqual(["Unary abc"]);
  });

  it("answers with the app's own message if there is one", async () => {
    const running = await start("1/h", {
      refuse: (body) => ({ code: status.UNAVAILABLE, message: `slow down \ud800 ${body.status}` }),
    });
    await ask(running);
    expect(await ask(running)).toMatchObject({ code: status.UNAVAILABLE, details: "slow down \ufffd 429" });
  });

  it("takes several limits all or nothing", async () => {
    const limits = [
      { name: "all", windows: ["4/h"] },
      { name: "each", by: ["user"], windows: ["2/h"] },
    ];
    const running = await start(
      { policies: { policies: [{ id: "api", limits, on_failure: "open" }] } },
      { dimensions: { user } },
    );
    const codes: number[] = [];
    for (const name of ["ada", "ada", "ada", "ada", "bob", "bob", "eve"]) codes.push((await as(running, name)).code);
    expect(codes).toEqual([0, 0, 8, 8, 0, 0, 8]);
  });
});

describe(`gRPC ${version}: headers`, () => {
  it("are on a status alone as well, and do not change it", async () => {
    const running = await start("5/h");
    const failed = await ask(running, "Unary", ["broken"]);
    expect(failed).toMatchObject({ code: status.NOT_FOUND, details: "nothing there", initial: undefined });
    expect(failed.trailers).toMatchObject({ "x-ratelimit-limit": "5", "x-ratelimit-remaining": "4" });
    const none = await ask(running, "ServerStream", ["silent"]);
    expect(none).toMatchObject({ code: status.OK, messages: [], initial: undefined });
    expect(none.trailers).toMatchObject({ "x-ratelimit-remaining": "3" });
  });

  it("are added to the handler's own, and change none of them", async () => {
    const running = await start("5/h");
    for (const remaining of ["4", "3"]) {
      const { initial } = await ask(running, "Unary", ["own"]);
      expect(initial).toMatchObject({
        "x-own": "handler",
        "x-ratelimit-scope": "handler",
        "x-ratelimit-remaining": remaining,
      });
    }
  });

  it("come in the generations that were asked for, or not at all", async () => {
    const old = await ask(await start("1/h", { headers: ["draft6"] }));
    expect(old.initial).toMatchObject({ "ratelimit-limit": "1", "ratelimit-remaining": "0" });
    expect(old.initial?.["x-ratelimit-limit"]).toBeUndefined();
    const quiet = await start("1/h", { headers: [] });
    expect(Object.keys((await ask(quiet)).initial!).filter((name) => /ratelimit/.test(name))).toEqual([]);
    expect((await ask(quiet)).trailers["retry-after"]).toBeDefined();
  });
});

describe(`gRPC ${version}: whom it counts`, () => {
  it("counts by the peer of the connection, and trusts no header", async () => {
    const { address } = await start("1/h");
    const fields = { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.1", "x-real-ip": "192.0.2.1" };
    expect(await askFrom(address, "127.0.0.1")).toMatchObject({ "grpc-status": "0" });
    expect(await askFrom(address, "127.0.0.1", fields)).toMatchObject({ "grpc-status": "8" });
    expect(await askFrom(address, "127.0.0.2")).toMatchObject({ "grpc-status": "0" });
    expect(await askFrom(address, "127.0.0.2")).toMatchObject({ "grpc-status": "8" });
  });

  it.each([
    ["by address", ["127.0.0.0/8"]],
    ["by number", 1],
  ] as const)("trusts its own proxies, given %s, and only them", async (_how, trustedProxies) => {
    const running = await start("1/h", { trustedProxies });
    const forwarded = async (chain: string): Promise<number> =>
      (await ask(running, "Unary", ["a"], { "x-forwarded-for": chain })).code;
    expect(await forwarded("192.0.2.1")).toBe(0);
    expect(await forwarded("192.0.2.2")).toBe(0);
    expect(await forwarded("198.51.100.7, 192.0.2.1")).toBe(8);
    expect(await forwarded("<script>")).toBe(0);
    expect(await forwarded("' or 1=1")).toBe(8);
  });

  it("counts by the app's own dimensions, known at once or later", async () => {
    const atOnce = await start(limit("1/h").by("user"), { dimensions: { user } });
    const later = await start(limit("1/h").by("user"), { dimensions: { user: async (call) => user(call) } });
    for (const running of [atOnce, later]) {
      expect((await as(running, "ada")).code).toBe(0);
      expect((await as(running, "bob")).code).toBe(0);
      expect((await as(running, "ada")).code).toBe(8);
    }
  });

  it("gives dimensions the facts about a call", async () => {
    const seen: unknown[] = [];
    const running = await start("9/h", {
      skip: ({ method: { path, requestStream, responseStream }, peer, call }) => {
        seen.push({ path, requestStream, responseStream, peer, host: call.getHost?.() });
        return false;
      },
    });
    await ask(running, "ClientStream");
    expect(seen).toMatchObject([
      { path: "/test.Echo/ClientStream", requestStream: true, responseStream: false, peer: "127.0.0.1" },
    ]);
  });

  it("takes the method's full name for the endpoint", async () => {
    const running = await start(limit("1/h").by("endpoint"));
    for (const kind of kinds) expect((await ask(running, kind)).code).toBe(0);
    for (const kind of kinds) expect((await ask(running, kind)).code).toBe(8);
    const policies = [{ id: "bidi", match: { endpoint: "/test.Echo/Bidi" }, limits: [{ windows: ["0/h"] }] }];
    const byPolicy = await start({ policies: { policies, default: { unlimited: true } } });
    expect((await ask(byPolicy, "Bidi")).code).toBe(8);
    expect((await ask(byPolicy, "Unary")).code).toBe(0);
  });
});

describe(`gRPC ${version}: how much it takes`, () => {
  it("skips what the app says, decided at once or later", async () => {
    const isOps = (call: GrpcCall): boolean => user(call) === "ops";
    for (const skip of [isOps, async (call: GrpcCall) => isOps(call)]) {
      const running = await start("1/h", { skip });
      for (let i = 0; i < 3; i++) {
        const skipped = await as(running, "ops");
        expect(skipped.code).toBe(0);
        expect(skipped.initial?.["x-ratelimit-limit"]).toBeUndefined();
      }
      expect((await ask(running)).code).toBe(0);
      expect((await ask(running)).code).toBe(8);
    }
  });

  it("takes the app's cost, and names an invalid cost", async () => {
    const running = await start("10/h", { cost: ({ metadata }) => Number(metadata.get("x-cost")[0]) });
    const costing = (cost: string): Promise<Ended> => ask(running, "Unary", ["a"], { "x-cost": cost });
    expect((await costing("4")).initial?.["x-ratelimit-remaining"]).toBe("6");
    expect((await costing("0")).initial?.["x-ratelimit-remaining"]).toBe("6");
    const bad = await costing("100001");
    expect(bad.code).toBe(status.INVALID_ARGUMENT);
    expect(bad.details).toContain("cost");
    expect(decodeDetails(bad)).toMatchObject({ code: status.INVALID_ARGUMENT, details: ["BadRequest"] });
  });

  it.each([
    ["Unary", { status: 0, messages: 1, bytes: 6 }],
    ["ClientStream", { status: 0, messages: 1, bytes: 6 }],
    ["ServerStream", { status: 0, messages: 6, bytes: 6 }],
    ["Bidi", { status: 0, messages: 2, bytes: 6 }],
  ] as const)("charges by what was sent, after it was sent: %s", async (kind, expected) => {
    const sent: SentCall[] = [];
    const running = await start("1000/d", {
      charge: (_call, one) => {
        sent.push(one);
        return 100 * one.bytes;
      },
    });
    expect((await ask(running, kind, ["abc", "def"])).initial?.["x-ratelimit-remaining"]).toBe("999");
    await expect.poll(() => sent, soon).toEqual([expected]);
    expect((await ask(running, "Unary", ["broken"])).trailers["x-ratelimit-remaining"]).toBe("398");
    await expect.poll(() => sent[1], soon).toEqual({ status: status.NOT_FOUND, messages: 0, bytes: 0 });
  });

  it("gives back what the app says, once the status is known", async () => {
    const running = await start("3/h", { giveBack: (_call, sent) => sent.status === status.OK });
    const left = async (message: string): Promise<unknown> => {
      const { initial, trailers } = await ask(running, "Unary", [message]);
      return { ...trailers, ...initial }["x-ratelimit-remaining"];
    };
    expect(await left("broken")).toBe("2");
    for (let i = 0; i < 4; i++) await expect.poll(() => left("a"), soon).toBe("1");
    await expect.poll(() => left("broken"), soon).toBe("1");
  });

  it("settles a call that is cancelled while its handler runs, once", async () => {
    const sent: SentCall[] = [];
    const running = await start("9/h", { charge: (_call, one) => void sent.push(one) });
    const { call } = begin(running, "Unary", ["stuck"], {});
    await expect.poll(() => running.ran, soon).toEqual(["Unary stuck"]);
    call.cancel();
    await expect.poll(() => sent, soon).toEqual([{ status: status.CANCELLED, messages: 0, bytes: 0 }]);
    // Ends in order after the other, so there is nothing of the other left to come.
    await ask(running);
    await expect.poll(() => sent, soon).toHaveLength(2);
  });

  it("settles a call that is cancelled while it is decided, and never runs its handler", async () => {
    const sent: SentCall[] = [];
    const begun = createEvent<void>();
    const known = createEvent<string>();
    const gone = createEvent<void>();
    const watching: ServerInterceptor = (_method, call) =>
      new ServerInterceptingCall(call, { start: (next) => next({ onCancel: gone.happens }) });
    const running = await start(
      limit("9/h").by("user"),
      {
        dimensions: {
          user: () => {
            begun.happens();
            return known.happened;
          },
        },
        charge: (_call, one) => void sent.push(one),
      },
      [watching],
    );
    const { call } = begin(running, "Bidi", ["a"], {});
    await begun.happened;
    call.cancel();
    await gone.happened;
    known.happens("ada");
    await expect.poll(() => sent, soon).toEqual([{ status: status.CANCELLED, messages: 0, bytes: 0 }]);
    expect(running.ran).toEqual([]);
  });

  it("lets a handler charge more by the call's ticket", async () => {
    const running = await start("20/h");
    expect((await ask(running, "Unary", ["charged"])).messages).toEqual(["19"]);
    expect((await ask(running)).initial?.["x-ratelimit-remaining"]).toBe("13");
  });
});

describe(`gRPC ${version}: when something is broken`, () => {
  it("lets calls pass when the limiter fails, and reports it to the listener", async () => {
    const errors: unknown[] = [];
    const broken = new Error("broken in an unexpected way");
    const limiter = createLimiter();
    const breaks = (): never => {
      throw broken;
    };
    for (const check of [() => Promise.reject(broken), breaks]) {
      const asked = { check, checkSync: breaks, charge: limiter.charge, give: limiter.give };
      const running = await start(asked, { onError: (error) => errors.push(error) });
      for (const kind of kinds) expect((await ask(running, kind)).messages.join("")).toBe("abc");
    }
    expect(errors).toEqual(Array(8).fill(broken));
  });

  it("ends a call whose own functions fail, and goes on with the next", async () => {
    const errors: unknown[] = [];
    const fails = (): never => {
      throw new Error("a secret of the app");
    };
    const failsLater = async (): Promise<never> => fails();
    for (const options of [{ skip: fails }, { cost: failsLater }, { dimensions: { user: failsLater } }]) {
      const running = await start("1/h", { ...options, onError: (error) => errors.push(error) });
      for (let i = 0; i < 2; i++) {
        expect(await ask(running)).toMatchObject({ code: status.UNKNOWN, details: "Unknown error" });
      }
      expect(running.ran).toEqual([]);
    }
    expect(errors).toHaveLength(6);
  });

  it("survives an onError that fails as well, at once or later", async () => {
    const fails = (): never => {
      throw new Error("on top of it");
    };
    const failsLater = async (): Promise<never> => fails();
    for (const skip of [fails, failsLater]) {
      for (const onError of [fails, failsLater]) {
        const running = await start("1/h", { skip, onError });
        expect(await ask(running)).toMatchObject({ code: status.UNKNOWN, details: "Unknown error" });
      }
    }
  });

  it("ends a call with the status that the app's own functions throw", async () => {
    const errors: unknown[] = [];
    const running = await start("1/h", {
      dimensions: {
        user: () => {
          throw Object.assign(new Error("who?"), { code: status.UNAUTHENTICATED, details: "no token" });
        },
      },
      onError: (error) => errors.push(error),
    });
    expect(await ask(running)).toMatchObject({ code: status.UNAUTHENTICATED, details: "no token" });
    expect(errors).toEqual([]);
    const database = await start("1/h", {
      skip: () => {
        throw Object.assign(new Error("a secret of the app"), { code: 13 });
      },
      onError: (error) => errors.push(error),
    });
    expect(await ask(database)).toMatchObject({ code: status.UNKNOWN, details: "Unknown error" });
    expect(errors).toHaveLength(1);
  });

  it("reports mistakes in its setup at once", () => {
    expect(() => rateLimit("ten per second")).toThrow(/windows/);
    expect(() => rateLimit("1/s", { trustedProxies: ["10.0.0.0/33"] })).toThrow(/10\.0\.0\.0\/33/);
    expect(() => rateLimit(limit("1/s").by("ip"), { name: "x" })).toThrow(/name applies to one-line limits only/);
  });

  it("answers without its counters as the policy says: passes, or UNAVAILABLE and never RESOURCE_EXHAUSTED", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const open = await start("1/h", { name: "open", counters });
    const closed = await start("1/h", { name: "closed", counters, onFailure: "closed" });
    await gone.close();
    for (let i = 0; i < 2; i++) {
      const passed = await ask(open);
      expect(passed.code).toBe(0);
      expect(passed.initial?.["x-ratelimit-degraded"]).toBe("true");
      const refused = await ask(closed);
      expect(refused.code).toBe(status.UNAVAILABLE);
      expect(decodeDetails(refused).waitMs).toBeGreaterThan(0);
    }
    expect(closed.ran).toEqual([]);
  });
});

it(`gRPC ${version}: two servers let in together exactly what the limit allows`, async () => {
  const shared = await startServer({ flavor: "valkey" });
  closing.push(() => shared.close());
  const open = async (): Promise<Running> => {
    const counters = new RedisCounters({ servers: shared.url, deadlineMs: 2000 });
    closing.push(() => counters.close());
    await counters.connected();
    return start("20/h", { name: "shared", counters });
  };
  const servers = [await open(), await open()];
  const codes = await readCodes(
    Array.from({ length: 50 }, (_, i) => ask(servers[i % 2]!, kinds[(i >> 1) % kinds.length]!)),
  );
  expect(codes.filter((code) => code === status.OK)).toHaveLength(20);
  expect(codes.filter((code) => code === status.RESOURCE_EXHAUSTED)).toHaveLength(30);
});
