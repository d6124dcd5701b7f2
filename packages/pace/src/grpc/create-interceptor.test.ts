import {
  Client,
  credentials,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { createLimiter, renderHeaders } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { encodeRetryStatus } from "../testing/encode-retry-status.ts";
import { HurriedTime } from "../testing/hurried-time.ts";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { type CallWaitEvent, type CreateInterceptorOptions, createInterceptor } from "./create-interceptor.ts";

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
} satisfies ServiceDefinition;

interface Refusal {
  readonly code?: status;
  readonly metadata?: Record<string, string | Buffer>;
}

let server: Server | undefined;
let client: Client | undefined;

afterEach(() => {
  client?.close();
  server?.forceShutdown();
  client = server = undefined;
});

function refusalError({ code = status.RESOURCE_EXHAUSTED, metadata = {} }: Refusal): Partial<ServiceError> {
  const trailers = new Metadata();
  for (const [name, value] of Object.entries(metadata)) trailers.set(name, value);
  return { code, details: "refused", metadata: trailers };
}

const retryInfo: Refusal = { metadata: { "grpc-status-details-bin": encodeRetryStatus(3, 0) } };

async function setUp(
  implementation: {
    readonly ask?: handleUnaryCall<string, string>;
    readonly list?: handleServerStreamingCall<string, string>;
  },
  options: CreateInterceptorOptions = {},
) {
  const started = new Server();
  server = started;
  const unimplemented = (): void => undefined;
  started.addService(service, { ask: unimplemented, list: unimplemented, upload: unimplemented, ...implementation });
  const port = await new Promise<number>((resolve, reject) =>
    started.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const time = new HurriedTime();
  const waits: CallWaitEvent[] = [];
  const interceptor = createInterceptor({
    repeatable: [service.ask.path, service.list.path],
    clock: time.clock,
    schedule: time.schedule,
    random: () => 0,
    onWait: (event) => waits.push(event),
    ...options,
  });
  const connected = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    interceptors: [interceptor],
    // A port may be reused by a later test, and grpc-js shares state about an address within a process.
    "grpc.use_local_subchannel_pool": 1,
  });
  client = connected;
  const ask = (request: string, deadline?: number): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const { path } = service.ask;
      const callOptions = deadline === undefined ? {} : { deadline };
      connected.makeUnaryRequest(path, text.serialize, text.deserialize, request, callOptions, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  const list = () => connected.makeServerStreamRequest(service.list.path, text.serialize, text.deserialize, "list");
  return { client: connected, ask, list, time, waits };
}

/** Refuses the first `times` calls. */
function refusing(
  times: number,
  refusal: Refusal,
): { readonly ask: handleUnaryCall<string, string>; readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    ask(call, callback) {
      seen.push(call.request);
      if (seen.length <= times) callback(refusalError(refusal));
      else callback(null, `answer to ${call.request}`);
    },
  };
}

describe("a refused call", () => {
  it.each([
    ["RetryInfo", retryInfo, 3000],
    ["pushback", { metadata: { "grpc-retry-pushback-ms": "250" } }, 250],
    ["both, of which the longer wins", { metadata: { ...retryInfo.metadata, "grpc-retry-pushback-ms": "250" } }, 3000],
    ["Retry-After", { metadata: { "retry-after": "2" } }, 2000],
    ["pushback and a longer Retry-After", { metadata: { "retry-after": "2", "grpc-retry-pushback-ms": "250" } }, 2000],
    ["pushback and a later reset", { metadata: { ratelimit: '"a";r=0;t=4', "grpc-retry-pushback-ms": "250" } }, 250],
    ["an exhausted limit", { metadata: { ratelimit: '"a";r=0;t=4' } }, 4000],
    ["UNAVAILABLE with pushback", { code: status.UNAVAILABLE, metadata: { "grpc-retry-pushback-ms": "250" } }, 250],
    ["UNAVAILABLE with RetryInfo", { code: status.UNAVAILABLE, ...retryInfo }, 3000],
  ] as [string, Refusal, number][])("is made again after the wait given by %s", async (_, refusal, waitMs) => {
    const { ask: handler, seen } = refusing(1, refusal);
    const { ask, waits } = await setUp({ ask: handler });
    expect(await ask("question")).toBe("answer to question");
    expect(seen).toEqual(["question", "question"]);
    expect(waits).toEqual([
      { path: service.ask.path, attempt: 1, waitMs, code: refusal.code ?? status.RESOURCE_EXHAUSTED },
    ]);
  });

  it.each([
    ["that does not say how long", {}],
    ["that forbids it", { metadata: { ...retryInfo.metadata, "grpc-retry-pushback-ms": "-1" } }],
    ["with pushback that is not a number", { metadata: { "grpc-retry-pushback-ms": "soon" } }],
    ["with malformed details", { metadata: { "grpc-status-details-bin": Buffer.alloc(50, 0xff) } }],
    ["that is UNAVAILABLE and has only a Retry-After", { code: status.UNAVAILABLE, metadata: { "retry-after": "1" } }],
    ["of another kind", { code: status.INTERNAL, ...retryInfo }],
    ["that asks for too long a wait", { metadata: { "retry-after": "61" } }],
  ] as [string, Refusal][])("is passed on unchanged: one %s", async (_, refusal) => {
    const { ask: handler, seen } = refusing(9, refusal);
    const { ask } = await setUp({ ask: handler });
    await expect(ask("question")).rejects.toMatchObject({
      code: refusal.code ?? status.RESOURCE_EXHAUSTED,
      details: "refused",
    });
    expect(seen).toHaveLength(1);
  });

  it("is passed on after the last attempt, with its metadata", async () => {
    const { ask: handler, seen } = refusing(9, retryInfo);
    const { ask } = await setUp({ ask: handler }, { maxAttempts: 2 });
    const error = (await ask("question").catch((one) => one)) as ServiceError;
    expect(error.metadata.get("grpc-status-details-bin")).toHaveLength(1);
    expect(seen).toHaveLength(2);
  });

  it("is passed on when the budget is used up", async () => {
    const { ask: handler, seen } = refusing(9, retryInfo);
    const { ask } = await setUp({ ask: handler }, { maxAttempts: 9, budget: { perMinute: 1, share: 0 } });
    await expect(ask("question")).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(seen).toHaveLength(2);
  });

  it("is not made again unless it is declared repeatable", async () => {
    const { ask: handler, seen } = refusing(9, retryInfo);
    const { ask } = await setUp({ ask: handler }, { repeatable: undefined });
    await expect(ask("question")).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(seen).toHaveLength(1);
  });

  it("may be declared repeatable by a function", async () => {
    const { ask: handler, seen } = refusing(1, retryInfo);
    const { ask } = await setUp({ ask: handler }, { repeatable: (path) => path.endsWith("/Ask") });
    await ask("question");
    expect(seen).toHaveLength(2);
  });

  it("sends the server the number of the attempt, and its own metadata each time", async () => {
    const attempts: unknown[] = [];
    const { client } = await setUp({
      ask(call, callback) {
        attempts.push([call.metadata.get("grpc-previous-rpc-attempts"), call.metadata.get("own")]);
        if (attempts.length < 3) callback(refusalError(retryInfo));
        else callback(null, "done");
      },
    });
    const metadata = new Metadata();
    metadata.set("own", "x");
    await new Promise<void>((resolve, reject) =>
      client.makeUnaryRequest(service.ask.path, text.serialize, text.deserialize, "q", metadata, (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    expect(attempts).toEqual([
      [[], ["x"]],
      [["1"], ["x"]],
      [["2"], ["x"]],
    ]);
  });

  it("may be announced by metadata that came before the status", async () => {
    let calls = 0;
    const { ask, waits } = await setUp({
      ask(call, callback) {
        calls += 1;
        const headers = new Metadata();
        headers.set("retry-after", "2");
        if (calls === 1) {
          call.sendMetadata(headers);
          callback(refusalError({}));
        } else callback(null, "done");
      },
    });
    expect(await ask("q")).toBe("done");
    expect(waits.map(({ waitMs }) => waitMs)).toEqual([2000]);
  });
});

describe("deadlines and cancelling", () => {
  it("is passed on at once if its deadline comes first", async () => {
    const { ask: handler, seen } = refusing(9, retryInfo);
    const { ask, time } = await setUp({ ask: handler });
    await expect(ask("q", time.clock.epochMs() + 2500)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(seen).toHaveLength(1);
  });

  it("shortens its jitter to meet its deadline", async () => {
    const { ask: handler } = refusing(1, retryInfo);
    const { ask, time, waits } = await setUp({ ask: handler }, { random: () => 1 });
    expect(await ask("q", time.clock.epochMs() + 3200)).toBe("answer to q");
    expect(waits[0]?.waitMs).toBeGreaterThanOrEqual(3000);
    expect(waits[0]?.waitMs).toBeLessThan(3200);
  });

  it("cancels at once while waiting, and leaves no timer", async () => {
    const time = new ManualTime();
    const { ask: handler, seen } = refusing(9, retryInfo);
    const { client } = await setUp({ ask: handler }, { clock: time.clock, schedule: time.schedule });
    let call: ReturnType<Client["makeUnaryRequest"]> | undefined;
    const failed = new Promise<ServiceError | null>((resolve) => {
      call = client.makeUnaryRequest(service.ask.path, text.serialize, text.deserialize, "q", (error) =>
        resolve(error),
      );
    });
    await expect.poll(() => time.timers).toBe(1);
    call?.cancel();
    expect(await failed).toMatchObject({ code: status.CANCELLED });
    await settled();
    expect([seen.length, time.timers]).toEqual([1, 0]);
  });

  it("cancels an attempt in progress", async () => {
    const { client } = await setUp({ ask: () => undefined });
    let call: ReturnType<Client["makeUnaryRequest"]> | undefined;
    const failed = new Promise<ServiceError | null>((resolve) => {
      call = client.makeUnaryRequest(service.ask.path, text.serialize, text.deserialize, "q", (error) =>
        resolve(error),
      );
    });
    call?.cancel();
    expect(await failed).toMatchObject({ code: status.CANCELLED });
  });

  it("reports that the channel was closed while waiting", async () => {
    const time = new ManualTime();
    const { ask: handler } = refusing(9, retryInfo);
    const { ask, client } = await setUp({ ask: handler }, { clock: time.clock, schedule: time.schedule });
    const failed = ask("q").catch((error) => error);
    await expect.poll(() => time.timers).toBe(1);
    client.close();
    await time.advance(3000);
    expect(await failed).toMatchObject({ code: status.UNAVAILABLE });
  });

  it("ends with the call that it was made for", async () => {
    const time = new ManualTime();
    const { ask: handler, seen } = refusing(9, retryInfo);
    const inner = await setUp({ ask: handler }, { clock: time.clock, schedule: time.schedule });
    const innerServer = server;
    let end = (_error: ServiceError | null): void => undefined;
    const ended = new Promise<ServiceError | null>((resolve) => {
      end = resolve;
    });
    const outer = await setUp({
      ask(call) {
        inner.client.makeUnaryRequest(
          service.ask.path,
          text.serialize,
          text.deserialize,
          "q",
          { parent: call },
          (error) => end(error),
        );
      },
    });
    try {
      const call = outer.client.makeUnaryRequest(
        service.ask.path,
        text.serialize,
        text.deserialize,
        "q",
        () => undefined,
      );
      await expect.poll(() => time.timers).toBe(1);
      call.cancel();
      expect(await ended).toMatchObject({ code: status.CANCELLED });
      expect([seen.length, time.timers]).toEqual([1, 0]);
    } finally {
      inner.client.close();
      innerServer?.forceShutdown();
    }
  });
});

describe("a stream of answers", () => {
  async function collect(
    stream: AsyncIterable<string>,
  ): Promise<{ readonly answers: string[]; readonly error: unknown }> {
    const answers: string[] = [];
    try {
      for await (const answer of stream) answers.push(answer);
      return { answers, error: undefined };
    } catch (error) {
      return { answers, error };
    }
  }

  it("is requested again as long as no answer has arrived", async () => {
    let calls = 0;
    const { list } = await setUp({
      list(call) {
        calls += 1;
        if (calls <= 2) call.emit("error", refusalError(retryInfo));
        else {
          for (const answer of ["a", "b", "c"]) call.write(answer);
          call.end();
        }
      },
    });
    expect(await collect(list())).toEqual({ answers: ["a", "b", "c"], error: undefined });
    expect(calls).toBe(3);
  });

  it("is never begun twice", async () => {
    let calls = 0;
    const { list } = await setUp({
      list(call) {
        calls += 1;
        call.write("a", () => call.emit("error", refusalError(retryInfo)));
      },
    });
    expect(await collect(list())).toMatchObject({ answers: ["a"], error: { code: status.RESOURCE_EXHAUSTED } });
    expect(calls).toBe(1);
  });

  it("may be empty, and has its metadata", async () => {
    const { list } = await setUp({
      list(call) {
        const headers = new Metadata();
        headers.set("own", "x");
        call.sendMetadata(headers);
        call.end();
      },
    });
    const stream = list();
    const metadata = new Promise<Metadata>((resolve) => stream.once("metadata", resolve));
    expect(await collect(stream)).toEqual({ answers: [], error: undefined });
    expect((await metadata).get("own")).toEqual(["x"]);
  });
});

describe("calls that it does not touch", () => {
  it("are streams of requests", async () => {
    const { client } = await setUp({}, { repeatable: () => true });
    const call = client.makeClientStreamRequest(service.upload.path, text.serialize, text.deserialize, () => undefined);
    call.cancel();
    await new Promise((resolve) => call.once("status", resolve));
  });

  it("are calls that succeed", async () => {
    const { ask: handler, seen } = refusing(0, {});
    const { ask, time } = await setUp({ ask: handler });
    expect(await ask("q")).toBe("answer to q");
    expect([seen.length, time.waits]).toEqual([1, []]);
  });
});

it("gets through a limit of Sluice by the headers that Sluice renders", async () => {
  const time = new HurriedTime();
  const limits = [{ by: [], windows: ["2/s burst 2"] }];
  const limiter = createLimiter({
    clock: time.clock,
    policies: { policies: [{ id: "api", limits, on_failure: "open" }] },
  });
  const { ask } = await setUp(
    {
      ask(call, callback) {
        const decision = limiter.checkSync({});
        const headers = Object.fromEntries(
          Object.entries(renderHeaders(decision)).map(([name, value]) => [name.toLowerCase(), value]),
        );
        if (decision.allowed) callback(null, call.request);
        else callback(refusalError({ metadata: headers }));
      },
    },
    { clock: time.clock, schedule: time.schedule },
  );
  for (let call = 0; call < 8; call++) expect(await ask(`${call}`)).toBe(`${call}`);
});
