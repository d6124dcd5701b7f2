import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  InterceptingCall,
  type Interceptor,
  Metadata,
  propagate,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type ServiceError,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { createLimiter, renderHeaders } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { PaceError } from "../pacing/pace-error.ts";
import { encodeRetryStatus } from "../testing/encode-retry-status.ts";
import { HurriedTime } from "../testing/hurried-time.ts";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { type CreateInterceptorOptions, createInterceptor } from "./create-interceptor.ts";

const text = { serialize: (value: string) => Buffer.from(value), deserialize: (bytes: Buffer) => bytes.toString() };
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  path,
  requestStream,
  responseStream,
  requestSerialize: text.serialize,
  requestDeserialize: text.deserialize,
  responseSerialize: text.serialize,
  responseDeserialize: text.deserialize,
});
const service = {
  ask: method("/test.Test/Ask", false, false),
  list: method("/test.Test/List", false, true),
  upload: method("/test.Test/Upload", true, false),
  talk: method("/test.Test/Talk", true, true),
} satisfies ServiceDefinition;

type Ask = (request: string, metadata: Metadata) => Partial<ServiceError> | string | undefined;

const clean: (() => void)[] = [];

afterEach(() => {
  for (const one of clean.splice(0)) one();
});

/** A server with scripted answers that records the calls it gets. Undefined: it does not answer. */
async function startServer(answer: Ask = (request) => `answer to ${request}`, initial?: () => Metadata) {
  const seen: string[] = [];
  const implementation: UntypedServiceImplementation = {
    ask(call: { request: string; metadata: Metadata; sendMetadata(m: Metadata): void }, callback: unknown) {
      seen.push(call.request);
      const answered = answer(call.request, call.metadata);
      if (initial !== undefined) call.sendMetadata(initial());
      if (typeof answered === "string") (callback as (e: null, a: string) => void)(null, answered);
      else if (answered !== undefined) (callback as (e: unknown) => void)(answered);
    },
    list(call: { request: string; write(a: string): void; end(): void }) {
      seen.push(call.request);
      for (const one of ["a", "b"]) call.write(one);
      call.end();
    },
    upload(call: AsyncIterable<string>, callback: (error: null, answer: string) => void) {
      seen.push("upload");
      void (async () => {
        const received: string[] = [];
        for await (const one of call) received.push(one);
        callback(null, received.join("+"));
      })().catch(() => undefined);
    },
    talk(call: AsyncIterable<string> & { write(a: string): void; end(): void }) {
      seen.push("talk");
      void (async () => {
        for await (const one of call) call.write(`${one}!`);
        call.end();
      })().catch(() => undefined);
    },
  };
  const server = new Server();
  server.addService(service, implementation);
  clean.push(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { address: `127.0.0.1:${port}`, seen };
}

function connect(address: string, ...interceptors: Interceptor[]) {
  const client = new Client(address, credentials.createInsecure(), {
    interceptors,
    "grpc.use_local_subchannel_pool": 1,
  });
  clean.push(() => client.close());
  const ask = (request: string, options: object = {}, metadata = new Metadata()) => {
    let cancel = (): void => undefined;
    const answer = new Promise<string | undefined>((resolve, reject) => {
      const { path } = service.ask;
      const { serialize, deserialize } = text;
      const call = client.makeUnaryRequest(path, serialize, deserialize, request, metadata, options, (error, one) =>
        error ? reject(error) : resolve(one),
      );
      cancel = () => call.cancel();
    });
    answer.catch(() => undefined);
    return Object.assign(answer, { cancel: () => cancel() });
  };
  const list = (): ClientReadableStream<string> =>
    client.makeServerStreamRequest(service.list.path, text.serialize, text.deserialize, "list");
  const upload = (): { stream: ClientWritableStream<string>; answer: Promise<string | undefined> } => {
    let stream: ClientWritableStream<string> | undefined;
    const answer = new Promise<string | undefined>((resolve, reject) => {
      stream = client.makeClientStreamRequest<string, string>(
        service.upload.path,
        text.serialize,
        text.deserialize,
        (error, one) => (error ? reject(error) : resolve(one)),
      );
    });
    answer.catch(() => undefined);
    return { stream: stream!, answer };
  };
  const talk = (): ClientDuplexStream<string, string> =>
    client.makeBidiStreamRequest(service.talk.path, text.serialize, text.deserialize);
  return { client, ask, list, upload, talk };
}

/** Time that a test moves, a server and a client. */
async function setUp(options: CreateInterceptorOptions = {}, ...server: Parameters<typeof startServer>) {
  const time = new ManualTime();
  const started = await startServer(...server);
  const interceptor = createInterceptor({
    clock: time.clock,
    schedule: time.schedule,
    random: () => 0,
    ...options,
  });
  return { time, interceptor, ...started, ...connect(started.address, interceptor) };
}

/** The same with time that jumps. */
async function setUpHurried(options: CreateInterceptorOptions = {}, ...server: Parameters<typeof startServer>) {
  const time = new HurriedTime();
  const started = await startServer(...server);
  const timing = { clock: time.clock, schedule: time.schedule, random: () => 0 };
  return { time, ...started, ...connect(started.address, createInterceptor({ ...timing, ...options })) };
}

function createMetadata(fields: Readonly<Record<string, string | Buffer>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name.toLowerCase(), value);
  return metadata;
}

function refusal(fields: Readonly<Record<string, string | Buffer>>, code = status.RESOURCE_EXHAUSTED) {
  return { code, details: "refused", metadata: createMetadata(fields) };
}

async function collect(stream: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const one of stream) all.push(one);
  return all;
}

const slowly: CreateInterceptorOptions = { pace: { limit: "1/s burst 1" } };

describe("a call waits for its turn", () => {
  it("if it is unary", async () => {
    const { time, ask, seen } = await setUp(slowly);
    expect(await ask("one")).toBe("answer to one");
    const answer = ask("two");
    await time.advance(999);
    expect([seen, time.timers]).toEqual([["one"], 1]);
    await time.advance(1);
    expect(await answer).toBe("answer to two");
    expect(time.timers).toBe(0);
  });

  it("if it has a stream of answers, with its reads", async () => {
    const { time, ask, list, seen } = await setUp(slowly);
    await ask("one");
    const answers = collect(list());
    await time.advance(999);
    expect([seen, time.timers]).toEqual([["one"], 1]);
    await time.advance(1);
    expect(await answers).toEqual(["a", "b"]);
  });

  it("if it is a stream of requests, with its messages and its end", async () => {
    const { time, ask, upload, seen } = await setUp(slowly);
    await ask("one");
    const { stream, answer } = upload();
    for (const one of ["x", "y", "z"]) stream.write(one);
    stream.end();
    await time.advance(999);
    expect([seen, time.timers]).toEqual([["one"], 1]);
    await time.advance(1);
    expect(await answer).toBe("x+y+z");
  });

  it("if both are streams", async () => {
    const { time, ask, talk, seen } = await setUp(slowly);
    await ask("one");
    const stream = talk();
    const answers = collect(stream);
    stream.write("x");
    await time.advance(999);
    expect([seen, time.timers]).toEqual([["one"], 1]);
    await time.advance(1);
    stream.write("y");
    stream.end();
    expect(await answers).toEqual(["x!", "y!"]);
  });

  it("in the order in which calls are made", async () => {
    const { time, ask, seen } = await setUp(slowly);
    const answers = ["one", "two", "three"].map((name) => ask(name));
    await answers[0];
    await time.advance(1000);
    await answers[1];
    await time.advance(1000);
    await answers[2];
    expect(seen).toEqual(["one", "two", "three"]);
  });

  it("with the metadata that it was made with", async () => {
    const { time, ask } = await setUp(slowly, (_, metadata) => String(metadata.get("own")[0]));
    await ask("one");
    const metadata = createMetadata({ own: "then" });
    const answer = ask("two", {}, metadata);
    metadata.set("own", "now");
    await time.advance(1000);
    expect(await answer).toBe("then");
  });

  it("unless pacing is off", async () => {
    const { time, ask, seen } = await setUp({ pace: false }, () => refusal({ "retry-after": "5" }));
    for (const name of ["one", "two"])
      await expect(ask(name)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: "refused" });
    expect([seen, time.timers]).toEqual([["one", "two"], 0]);
  });

  it("also for each further attempt", async () => {
    let calls = 0;
    const { time, ask, seen } = await setUp(
      { pace: { limit: "1/m burst 1" }, repeatable: [service.ask.path] },
      (request) => (++calls === 1 ? refusal({ "retry-after": "1" }) : request),
    );
    const answer = ask("one");
    await expect.poll(() => time.timers).toBe(1);
    await time.advance(59_999);
    expect([seen, time.timers]).toEqual([["one"], 1]);
    await time.advance(1);
    expect(await answer).toBe("one");
  });
});

describe("running calls", () => {
  it("are bounded in number, until their answers begin", async () => {
    const held: (() => void)[] = [];
    const time = new ManualTime();
    const server = new Server();
    clean.push(() => server.forceShutdown());
    server.addService(
      { ask: service.ask },
      { ask: (_: unknown, callback: (error: null, answer: string) => void) => held.push(() => callback(null, "done")) },
    );
    const port = await new Promise<number>((resolve) =>
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, bound) => resolve(bound)),
    );
    const options = { clock: time.clock, schedule: time.schedule, pace: { concurrency: 1 } };
    const { ask } = connect(`127.0.0.1:${port}`, createInterceptor(options));
    const answers = [ask("one"), ask("two")];
    await expect.poll(() => held.length).toBe(1);
    held[0]?.();
    await answers[0];
    await expect.poll(() => held.length).toBe(2);
    held[1]?.();
    expect(await answers[1]).toBe("done");
  });

  it("stop counting when they are cancelled or fail", async () => {
    const { ask, seen } = await setUp({ pace: { concurrency: 1 } }, (request) =>
      request === "hangs" ? undefined : request === "fails" ? refusal({}, status.INTERNAL) : request,
    );
    const hangs = ask("hangs");
    const fails = ask("fails");
    const last = ask("last");
    await expect.poll(() => seen).toEqual(["hangs"]);
    hangs.cancel();
    await expect(hangs).rejects.toMatchObject({ code: status.CANCELLED });
    await expect(fails).rejects.toMatchObject({ code: status.INTERNAL });
    expect(await last).toBe("last");
  });

  it("are counted no longer than until their metadata", async () => {
    const { ask, seen } = await setUp(
      { pace: { concurrency: 1 } },
      () => undefined,
      () => new Metadata(),
    );
    for (const name of ["one", "two", "three"]) ask(name);
    await expect.poll(() => seen).toEqual(["one", "two", "three"]);
  });

  it("may be answered at once by an interceptor, however many wait", async () => {
    const { address } = await startServer();
    const held: (() => void)[] = [];
    const answering: Interceptor = (options, nextCall) =>
      new InterceptingCall(nextCall(options), {
        start(_, listener) {
          const answer = (): void => {
            listener.onReceiveMetadata(new Metadata());
            listener.onReceiveMessage("kept");
            listener.onReceiveStatus({ code: status.OK, details: "", metadata: new Metadata() });
          };
          if (held.push(answer) > 1) answer();
        },
        sendMessage: () => undefined,
        halfClose: () => undefined,
      });
    const { ask } = connect(address, createInterceptor({ pace: { concurrency: 1 } }), answering);
    const answers = Array.from({ length: 9000 }, () => ask("q"));
    held[0]?.();
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["kept"]));
  });

  it("are made once if their turn comes at once", async () => {
    const { address } = await startServer();
    let made = 0;
    const counting: Interceptor = (options, nextCall) => {
      made += 1;
      return new InterceptingCall(nextCall(options));
    };
    await connect(address, createInterceptor(), counting).ask("one");
    expect(made).toBe(1);
  });
});

describe("learning from answers", () => {
  const limitHeaders = { "x-ratelimit-limit": "10", "x-ratelimit-remaining": "1", "x-ratelimit-reset": "8" };

  it.each([
    ["initial metadata", undefined, () => createMetadata(limitHeaders)],
    [
      "trailers",
      () => ({ code: status.NOT_FOUND, details: "none", metadata: createMetadata(limitHeaders) }),
      undefined,
    ],
  ] as [string, Ask | undefined, (() => Metadata) | undefined][])(
    "slows down before the limit is reached, by %s",
    async (_, answer, initial) => {
      const { time, ask, seen } = await setUp({}, answer, initial);
      await ask("one").catch(() => undefined);
      const next = ask("two").catch(() => undefined);
      await time.advance(3999);
      expect([seen, time.timers]).toEqual([["one"], 1]);
      await time.advance(1);
      await next;
      expect(seen).toEqual(["one", "two"]);
    },
  );

  it.each([
    ["Retry-After", { "retry-after": "3" }, status.RESOURCE_EXHAUSTED, 3000],
    ["an exhausted limit", { ratelimit: '"a";r=0;t=4' }, status.RESOURCE_EXHAUSTED, 4000],
    ["RetryInfo", { "grpc-status-details-bin": encodeRetryStatus(3, 0) }, status.UNAVAILABLE, 3000],
    ["pushback", { "grpc-retry-pushback-ms": "250" }, status.RESOURCE_EXHAUSTED, 250],
    [
      "RetryInfo, even if the call itself must not be repeated",
      { "grpc-status-details-bin": encodeRetryStatus(3, 0), "grpc-retry-pushback-ms": "-1" },
      status.RESOURCE_EXHAUSTED,
      3000,
    ],
  ] as [string, Record<string, string | Buffer>, status, number][])(
    "holds others back for as long as a refusal says by %s",
    async (_, fields, code, waitMs) => {
      let calls = 0;
      const { time, ask, seen } = await setUp({ repeatable: () => true, maxAttempts: 1 }, (request) =>
        ++calls === 1 ? refusal(fields, code) : request,
      );
      await expect(ask("one")).rejects.toMatchObject({ code });
      const next = ask("two");
      await time.advance(waitMs - 1);
      expect([seen, time.timers]).toEqual([["one"], 1]);
      await time.advance(1);
      expect(await next).toBe("two");
    },
  );

  it.each([
    ["is not a refusal", { "retry-after": "3" }, status.NOT_FOUND],
    ["asks for longer than any call waits", { "retry-after": "61" }, status.RESOURCE_EXHAUSTED],
    ["does not say how long", {}, status.RESOURCE_EXHAUSTED],
    ["has lost its server", { "retry-after": "3" }, status.UNAVAILABLE],
  ] as [string, Record<string, string>, status][])(
    "holds no call back for a status that %s",
    async (_, fields, code) => {
      let calls = 0;
      const { ask } = await setUp({}, (request) => (++calls === 1 ? refusal(fields, code) : request));
      await expect(ask("one")).rejects.toMatchObject({ code });
      expect(await ask("two")).toBe("two");
    },
  );

  it("is not held back by a Retry-After before a good answer", async () => {
    const { ask } = await setUp({}, undefined, () => createMetadata({ "retry-after": "30" }));
    await ask("one");
    expect(await ask("two")).toBe("answer to two");
  });

  it.each([
    ["is never refused by Sluice's limits if it paces", undefined, true],
    ["is refused if it does not, which shows that there is a limit", false, false],
  ] as [string, false | undefined, boolean][])("%s", async (_, pace, passes) => {
    const time = new HurriedTime();
    const windows = ["5/s burst 5"];
    const limiter = createLimiter({
      clock: time.clock,
      policies: { policies: [{ id: "api", limits: [{ by: [], windows }], on_failure: "open" }] },
    });
    let headers: Record<string, string> = {};
    const { address } = await startServer(
      (request) => {
        const decision = limiter.checkSync({});
        headers = renderHeaders(decision);
        return decision.allowed ? request : refusal(headers);
      },
      () => createMetadata(headers),
    );
    const { ask } = connect(address, createInterceptor({ clock: time.clock, schedule: time.schedule, pace }));
    let refused = 0;
    for (let call = 0; call < 20; call++) await ask(`${call}`).catch(() => refused++);
    expect(refused === 0).toBe(passes);
  });
});

describe("a call that waits for its turn", () => {
  it("is cancelled at once, and leaves nothing behind", async () => {
    const { time, ask, seen } = await setUp(slowly);
    await ask("one");
    const answer = ask("two");
    await settled();
    answer.cancel();
    await expect(answer).rejects.toMatchObject({ code: status.CANCELLED });
    await time.advance(5000);
    expect([seen, time.timers]).toEqual([["one"], 0]);
  });

  it("is cancelled at once if it is a stream", async () => {
    const { time, ask, list, upload, talk, seen } = await setUp(slowly);
    await ask("one");
    const calls = [list(), talk()];
    const { stream, answer } = upload();
    stream.write("x");
    const ends = calls.map((one) => new Promise<unknown>((resolve) => one.once("error", resolve).resume()));
    await settled();
    for (const one of [...calls, stream]) one.cancel();
    for (const end of [...ends, answer.catch((error) => error)])
      expect(await end).toMatchObject({ code: status.CANCELLED });
    expect([seen, time.timers]).toEqual([["one"], 0]);
  });

  it("ends at its deadline, and is not sent", async () => {
    const { time, ask, seen } = await setUp(slowly);
    await ask("one");
    const answer = ask("two", { deadline: time.clock.epochMs() + 400 });
    const third = ask("three");
    await time.advance(400);
    await expect(answer).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
      details: expect.stringContaining("not sent"),
    });
    await time.advance(600);
    expect(await third).toBe("answer to three");
    expect([seen, time.timers]).toEqual([["one", "three"], 0]);
  });

  it("is made in time if its turn comes before its deadline, and leaves no timer", async () => {
    const { time, ask } = await setUpHurried({ pace: { limit: "1/100ms burst 1" } });
    await ask("one");
    expect(await ask("two", { deadline: time.clock.epochMs() + 60_000 })).toBe("answer to two");
    expect(time.waits).toEqual([100]);
  });

  /** A call that a server has received and does not answer: a parent for other calls. */
  async function startParent(deadline?: number) {
    const server = new Server();
    clean.push(() => server.forceShutdown());
    const got = new Promise<ServerUnaryCall<string, string>>((resolve) => {
      server.addService({ ask: service.ask }, { ask: (call: ServerUnaryCall<string, string>) => resolve(call) });
    });
    const port = await new Promise<number>((resolve) =>
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_error, bound) => resolve(bound)),
    );
    const outer = connect(`127.0.0.1:${port}`).ask("outer", deadline === undefined ? {} : { deadline });
    const parent = await got;
    const cancel = (): Promise<void> =>
      new Promise((resolve) => {
        parent.once("cancelled", () => resolve());
        outer.cancel();
      });
    return { parent, cancel };
  }

  it("ends with its parent call", async () => {
    const { time, ask, seen } = await setUp(slowly);
    await ask("one");
    const { parent, cancel } = await startParent();
    const answer = ask("two", { parent });
    await expect.poll(() => time.timers).toBe(1);
    await cancel();
    await expect(answer).rejects.toMatchObject({ code: status.CANCELLED });
    expect([seen, time.timers]).toEqual([["one"], 0]);
  });

  it("ends at once if its parent has ended already, and does not listen to it", async () => {
    const { ask } = await setUp(slowly);
    await ask("one");
    const { parent, cancel } = await startParent();
    await cancel();
    const before = parent.listenerCount("cancelled");
    await expect(ask("two", { parent })).rejects.toMatchObject({ code: status.CANCELLED });
    // grpc-js itself leaves one, of the call that is never started.
    expect(parent.listenerCount("cancelled")).toBe(before + 1);
  });

  it("outlives its parent if its flags say so", async () => {
    const { time, ask } = await setUp(slowly);
    await ask("one");
    const { parent, cancel } = await startParent();
    const answer = ask("two", { parent, propagate_flags: propagate.DEFAULTS & ~propagate.CANCELLATION });
    await expect.poll(() => time.timers).toBe(1);
    await cancel();
    await time.advance(1000);
    expect(await answer).toBe("answer to two");
  });

  it.each([
    ["ends at its parent's deadline", {}, status.DEADLINE_EXCEEDED],
    ["ignores its parent's deadline if its flags say so", { propagate_flags: propagate.CANCELLATION }, "made"],
  ])("%s", async (_, flags, becomes) => {
    const { parent } = await startParent(Date.now() + 3_600_000);
    const time = new ManualTime();
    const clock = { nowMs: () => time.clock.nowMs(), epochMs: () => Number(parent.getDeadline()) - 400 };
    const { address } = await startServer();
    const { ask } = connect(address, createInterceptor({ ...slowly, clock, schedule: time.schedule }));
    await ask("one");
    const answer = ask("two", { parent, ...flags }).catch((error) => error.code);
    await time.advance(400);
    await time.advance(600);
    expect(await answer).toBe(becomes === "made" ? "answer to two" : becomes);
  });

  it("ends if the channel is closed before its turn, and calls on other channels go on", async () => {
    const { time, interceptor, address, client, ask } = await setUp({
      pace: { limit: "1/s burst 1", concurrency: 1 },
      key: () => "all",
    });
    await ask("one");
    const lost = ask("two");
    const other = connect(address, interceptor).ask("three");
    await settled();
    client.close();
    await time.advance(1000);
    await expect(lost).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await time.advance(1000);
    expect(await other).toBe("answer to three");
  });
});

describe("a call that gets no turn", () => {
  it("ends with RESOURCE_EXHAUSTED and a PaceError as its cause, and is not sent", async () => {
    const { time, ask, seen } = await setUp({ pace: { limit: "1/m burst 1" }, maxWaitMs: 500, repeatable: () => true });
    await ask("one");
    const error = (await ask("two").catch((one) => one)) as ServiceError;
    expect(error).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: expect.stringContaining("nothing was sent"),
      cause: { code: "wait_too_long", retryAfterMs: 60_000 },
    });
    expect(error.cause).toBeInstanceOf(PaceError);
    expect([seen, time.timers]).toEqual([["one"], 0]);
  });

  it("ends the same way if it is a stream", async () => {
    const { ask, list, upload, talk } = await setUp({ pace: { limit: "1/m burst 1" }, maxWaitMs: 500 });
    await ask("one");
    const cause = { code: "wait_too_long" };
    await expect(collect(list())).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED, cause });
    await expect(collect(talk())).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED, cause });
    const { stream, answer } = upload();
    stream.end("x");
    await expect(answer).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED, cause });
  });

  it("ends the same way if too many wait", async () => {
    const { time, ask } = await setUp({ pace: { limit: "1/s burst 1", maxQueue: 1 } });
    await ask("one");
    const waiting = ask("two");
    await expect(ask("three")).rejects.toMatchObject({ cause: { code: "queue_full" } });
    await time.advance(1000);
    expect(await waiting).toBe("answer to two");
  });

  it("ends with the server's earlier answer, if there was one", async () => {
    const options = { repeatable: () => true, pace: { limit: "1/m burst 1" }, maxWaitMs: 5000 };
    const { time, ask, seen } = await setUp(options, () => refusal({ "retry-after": "2", own: "x" }));
    const answer = ask("one").catch((error) => error);
    await expect.poll(() => time.timers).toBe(1);
    await time.advance(2000);
    const error = (await answer) as ServiceError;
    expect([error.code, error.details, error.metadata.get("own")]).toEqual([8, "refused", ["x"]]);
    expect([seen, time.timers]).toEqual([["one"], 0]);
  });
});

describe("keys", () => {
  it("are the targets of channels, if one interceptor serves several", async () => {
    const { interceptor, ask } = await setUp({ pace: { limit: "1/h burst 1" } });
    const other = connect((await startServer()).address, interceptor);
    expect(await ask("one")).toBe("answer to one");
    expect(await other.ask("two")).toBe("answer to two");
  });

  it("may go by path and metadata", async () => {
    const outlines: unknown[] = [];
    const { ask, address } = await setUp({
      pace: { limit: "1/h burst 1" },
      key({ path, target, metadata }) {
        outlines.push([path, target]);
        return String(metadata.get("token")[0]);
      },
    });
    expect(await ask("one", {}, createMetadata({ token: "a" }))).toBe("answer to one");
    expect(await ask("two", {}, createMetadata({ token: "b" }))).toBe("answer to two");
    expect(outlines[0]).toEqual([service.ask.path, expect.stringContaining(address)]);
  });

  it("that are invalid are refused, and nothing is sent", async () => {
    const { ask, seen } = await setUp({ key: () => undefined as never });
    await expect(ask("one")).rejects.toMatchObject({ code: "invalid_request", problems: [{ path: ["key"] }] });
    expect(seen).toEqual([]);
  });
});

it.each([
  ["pace", "10/s"],
  ["budget", true],
  ["repeatable", "/test.Test/Ask"],
  ["key", "a"],
  ["onWait", {}],
  ["random", 0.5],
  ["clock", {}],
  ["schedule", 5],
  ["maxAttempts", 0],
  ["maxKeys", 0],
])("names a wrong option: %s", (name, value) => {
  expect(() => createInterceptor({ [name]: value })).toThrow(
    expect.objectContaining({ code: "invalid_request", problems: [expect.objectContaining({ path: [name] })] }),
  );
});
