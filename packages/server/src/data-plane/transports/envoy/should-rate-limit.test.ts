import { Client, credentials, status } from "@grpc/grpc-js";
import { grpcService } from "@sluice/protocol";
import {
  RateLimitResponse_Code as Code,
  RateLimitRequest,
  type RateLimitResponse,
  RateLimitServiceDefinition,
  RateLimitUnit,
  RateLimitResponse_RateLimit_Unit as Unit,
} from "@sluice/protocol/envoy";
import { redis } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import { type CounterStore, createLimiter, type Limiter, ManualClock, MemoryCounters } from "sluice";
import { parsePolicyFiles } from "sluice/policy-text";
import type { TakeOptions } from "sluice/store";
import { failingCounters } from "sluice/testing";
import { afterEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import {
  accessWithRole,
  createTestService,
  type ListeningTransport,
  listenForTest,
} from "../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";
import { findOverrideLimit } from "./find-override-limit.ts";
import { shouldRateLimit } from "./should-rate-limit.ts";

/** Who may give back. */
const access = accessWithRole("check");

type Limits = Parameters<CounterStore["take"]>[0];

const text = `
domain: shop
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 5, name: per-tenant }
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
    descriptors:
      - key: path
        value: /files/*
        share_threshold: true
        rate_limit: { unit: week, requests_per_unit: 2 }
      - key: path
        value: /pics/*
        rate_limit: { unit: day, requests_per_unit: 1 }
  - { key: plan, value: partner, rate_limit: { unlimited: true, replaces: [{ name: per-tenant }] } }
  - { key: plan, value: none, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: watched, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: east, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: west, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: tokens, charge_denied: true, rate_limit: { unit: hour, requests_per_unit: 100 } }
  - key: several
    rate_limits:
      - { unit: second, requests_per_unit: 2, name: quick }
      - { per: 15m, requests_per_unit: 3, name: slow, algorithm: sliding_window }
  - key: mixed
    rate_limits:
      - { unit: hour, requests_per_unit: 2, name: burning, charge_denied: true }
      - { unit: day, requests_per_unit: 3, name: kept }
  - { key: kept, on_failure: closed, rate_limit: { unit: hour, requests_per_unit: 1 } }
`;

const ordinary = `
policies:
  - id: api
    domain: plain
    match: { method: GET }
    limits: [{ by: [user], windows: [2/m] }]
    on_failure: open
default: none
`;

/** At the beginning of a minute, an hour and a day. */
const startMs = Date.UTC(2026, 0, 1);

let clock: ManualClock;
let closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

interface Setting {
  readonly limiter: Limiter;
  readonly client: GrpcTestClient;
  readonly listening: ListeningTransport;
}

async function open(
  options: { counters?: CounterStore; envoyHeaders?: boolean; files?: string[] } = {},
): Promise<Setting> {
  clock = new ManualClock(startMs);
  const { policySet } = parsePolicyFiles((options.files ?? [text, ordinary]).map((one) => ({ text: one })));
  const counters = options.counters ?? new MemoryCounters({ clock });
  const limiter = createLimiter({ policies: policySet, clock, counters });
  const { envoyHeaders } = options;
  const listening = await listenForTest(
    "grpc",
    wholeGrpcServer({ ...createTestService(limiter, { access }), envoyHeaders }),
  );
  const client = connectForTest(listening.address);
  closing.push(
    () => limiter.close(),
    () => listening.close(),
    () => client.close(),
  );
  return { limiter, client, listening };
}

type Asked = Parameters<typeof RateLimitRequest.fromPartial>[0];

function ask({ client }: Setting, request: Asked): Promise<RateLimitResponse> {
  return client.call(
    RateLimitServiceDefinition,
    "shouldRateLimit",
    RateLimitRequest.fromPartial({ domain: "shop", ...request }),
  );
}

/** `["tenant=a", "user=b|path=/x"]`, each a descriptor. */
function descriptors(...written: string[]): NonNullable<Asked["descriptors"]> {
  return written.map((one) => ({
    entries: one.split("|").map((entry) => {
      const [key = "", value = ""] = entry.split("=");
      return { key, value };
    }),
  }));
}

const codes = ({ overallCode, statuses }: RateLimitResponse) => [overallCode, ...statuses.map(({ code }) => code)];
const { OK, OVER_LIMIT } = Code;

describe("Envoy's rate limit service", () => {
  it("answers for each descriptor, in their order, with limit, name, rest and reset", async () => {
    const setting = await open();
    await clock.advance(15_250);
    const answer = await ask(setting, { descriptors: descriptors("tenant=acme", "unknown=1", "user=ada") });
    expect(answer.overallCode).toBe(OK);
    expect(answer.statuses).toEqual([
      {
        code: OK,
        currentLimit: { requestsPerUnit: 5, unit: Unit.MINUTE, name: "per-tenant" },
        limitRemaining: 4,
        durationUntilReset: { seconds: 44, nanos: 750_000_000 },
      },
      { code: OK, limitRemaining: 0 },
      {
        code: OK,
        currentLimit: { requestsPerUnit: 2, unit: Unit.HOUR, name: "" },
        limitRemaining: 1,
        durationUntilReset: { seconds: 3_584, nanos: 750_000_000 },
      },
    ]);
  });

  it("counts windows from the epoch, so that a minute ends with the minute", async () => {
    const setting = await open();
    await clock.advance(59_000);
    const full = await ask(setting, { descriptors: descriptors("tenant=acme"), hitsAddend: 5 });
    expect(codes(full)).toEqual([OK, OK]);
    expect(codes(await ask(setting, { descriptors: descriptors("tenant=acme") }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    await clock.advance(1_000);
    expect(codes(await ask(setting, { descriptors: descriptors("tenant=acme") }))).toEqual([OK, OK]);
  });

  it("leaves nothing if a descriptor is over its limit, even if a smaller addend would pass", async () => {
    const setting = await open();
    await ask(setting, { descriptors: descriptors("tenant=acme"), hitsAddend: 3 });
    const { overallCode, statuses } = await ask(setting, { descriptors: descriptors("tenant=acme"), hitsAddend: 4 });
    expect(overallCode).toBe(OVER_LIMIT);
    expect(statuses).toMatchObject([{ code: OVER_LIMIT, limitRemaining: 0 }]);
    expect((await ask(setting, { descriptors: descriptors("tenant=acme"), hitsAddend: 2 })).overallCode).toBe(OK);
  });

  it("says when a window ends, or how long it is, if an addend is above the limit: never 0", async () => {
    const setting = await open();
    const above = { descriptors: descriptors("tenant=acme"), hitsAddend: 6 };
    expect((await ask(setting, above)).statuses).toMatchObject([
      { code: OVER_LIMIT, limitRemaining: 0, durationUntilReset: { seconds: 60, nanos: 0 } },
    ]);
    await ask(setting, { descriptors: descriptors("tenant=acme") });
    await clock.advance(20_000);
    const used = (await ask(setting, above)).statuses[0]?.durationUntilReset;
    expect(used?.seconds).toBeGreaterThan(0);
    expect(used?.seconds).toBeLessThanOrEqual(40);
  });

  it("takes nothing from any descriptor if one denies", async () => {
    const setting = await open();
    const both = { descriptors: descriptors("tenant=acme", "user=ada") };
    for (const expected of [OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT])
      expect((await ask(setting, both)).overallCode).toBe(expected);
    const { statuses } = await ask(setting, both);
    expect(statuses.map(({ code, limitRemaining }) => [code, limitRemaining])).toEqual([
      [OK, 3],
      [OVER_LIMIT, 0],
    ]);
    const other = await ask(setting, { descriptors: descriptors("tenant=acme", "user=bob") });
    expect(other.statuses[0]?.limitRemaining).toBe(2);
  });

  it("has a counter for each value, and goes down the tree with each entry", async () => {
    const setting = await open();
    for (const path of ["/pics/a", "/pics/b"])
      expect(codes(await ask(setting, { descriptors: descriptors(`user=ada|path=${path}`) }))).toEqual([OK, OK]);
    expect(codes(await ask(setting, { descriptors: descriptors("user=ada|path=/pics/a") }))).toEqual([
      OVER_LIMIT,
      OVER_LIMIT,
    ]);
    const deeper = await ask(setting, { descriptors: descriptors("user=ada|path=/pics/a|more=1", "path=/pics/a") });
    expect(deeper.statuses).toEqual([
      { code: OK, limitRemaining: 0 },
      { code: OK, limitRemaining: 0 },
    ]);
  });

  it("has one counter for all values of a pattern with share_threshold", async () => {
    const setting = await open();
    const rest = async (descriptor: string) =>
      (await ask(setting, { descriptors: descriptors(descriptor) })).statuses[0]?.limitRemaining;
    expect(await rest("user=ada|path=/files/a")).toBe(1);
    expect(await rest("user=ada|path=/files/b")).toBe(0);
    expect(await rest("user=bob|path=/files/b")).toBe(1);
    const { overallCode, statuses } = await ask(setting, { descriptors: descriptors("user=ada|path=/files/c") });
    expect([overallCode, statuses[0]?.currentLimit?.unit]).toEqual([OVER_LIMIT, Unit.WEEK]);
  });

  it("answers OK for an unlimited descriptor, with the largest possible remainder", async () => {
    const { statuses } = await ask(await open(), { descriptors: descriptors("plan=partner") });
    expect(statuses).toEqual([{ code: OK, limitRemaining: 4_294_967_295 }]);
  });

  it("denies everything under a limit of 0", async () => {
    const answer = await ask(await open(), { descriptors: descriptors("plan=none") });
    expect(codes(answer)).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(answer.statuses[0]?.currentLimit).toEqual({ requestsPerUnit: 0, unit: Unit.SECOND, name: "" });
  });

  it("denies a descriptor with an entry that an operator blocks, whatever limit it has, and charges none", async () => {
    const setting = await open();
    const { limiter } = setting;
    const block = (more: { policies?: string[] } = {}): unknown =>
      limiter.usePolicies({
        ...limiter.snapshot.policySet,
        blocks: [{ dimension: "user", value: "bad", untilMs: startMs + 60_000, ...more }],
      });
    const bad = ["user=bad", "watched=1|user=bad", "plan=partner|user=bad", "unknown=1|user=bad", "several=1|user=bad"];
    const limit = { requestsPerUnit: 9, unit: RateLimitUnit.MINUTE };
    block();
    for (const one of bad) {
      expect(codes(await ask(setting, { descriptors: descriptors(one) }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
      const brought = descriptors(one).map((descriptor) => ({ ...descriptor, limit }));
      expect(codes(await ask(setting, { descriptors: brought }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
      const both = { descriptors: descriptors("tenant=acme", one) };
      expect(codes(await ask(setting, both))).toEqual([OVER_LIMIT, OK, OVER_LIMIT]);
    }
    expect(codes(await ask(setting, { descriptors: descriptors("user=good") }))).toEqual([OK, OK]);
    // Only where the policy that it names decides.
    block({ policies: ["envoy:shop/user"] });
    expect(codes(await ask(setting, { descriptors: descriptors("user=bad") }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(await ask(setting, { descriptors: descriptors("unknown=1|user=bad") }))).toEqual([OK, OK]);
    clock.advance(60_000);
    block();
    const { statuses } = await ask(setting, { descriptors: descriptors("tenant=acme", "user=bad") });
    expect(statuses).toMatchObject([
      { code: OK, limitRemaining: 4 },
      { code: OK, limitRemaining: 1 },
    ]);
  });

  it("denies what an operator blocks while the counters are unavailable, and in a descriptor that only peeks", async () => {
    const setting = await open({ counters: failingCounters() });
    const { limiter } = setting;
    const blocks = [{ dimension: "user", value: "bad", untilMs: startMs + 60_000 }];
    limiter.usePolicies({ ...limiter.snapshot.policySet, blocks });
    const both = descriptors("tenant=acme", "user=bad");
    expect(codes(await ask(setting, { descriptors: both }))).toEqual([OVER_LIMIT, OK, OVER_LIMIT]);
    const peeks = both.map((descriptor) => ({ ...descriptor, hitsAddend: 0 }));
    expect(codes(await ask(setting, { descriptors: peeks }))).toEqual([OVER_LIMIT, OK, OVER_LIMIT]);
  });

  it("leaves out a limit that another one of the request replaces", async () => {
    const setting = await open();
    const replaced = { descriptors: descriptors("tenant=acme", "plan=partner"), hitsAddend: 5 };
    for (let i = 0; i < 3; i++) {
      const { overallCode, statuses } = await ask(setting, replaced);
      expect(overallCode).toBe(OK);
      expect(statuses[0]).toEqual({ code: OK, limitRemaining: 0 });
    }
    const alone = await ask(setting, { descriptors: descriptors("tenant=acme") });
    expect(alone.statuses[0]?.limitRemaining).toBe(4);
  });

  it("counts in shadow mode and reports how it stands, but never denies", async () => {
    const setting = await open();
    const watched = { descriptors: descriptors("watched=1", "tenant=acme") };
    expect((await ask(setting, watched)).statuses[0]).toMatchObject({ code: OK, limitRemaining: 0 });
    const over = await ask(setting, watched);
    expect(codes(over)).toEqual([OK, OK, OK]);
    expect(over.statuses[0]).toMatchObject({
      limitRemaining: 0,
      currentLimit: { requestsPerUnit: 1, unit: Unit.HOUR },
    });
    expect(over.statuses[1]?.limitRemaining).toBe(3);
  });

  it("reports in shadow mode the limit with the longest wait", async () => {
    const limits = "[{ unit: minute, requests_per_unit: 1 }, { unit: hour, requests_per_unit: 1, name: slow }]";
    const setting = await open({
      files: [`domain: shop\ndescriptors: [{ key: k, shadow_mode: true, rate_limits: ${limits} }]`],
    });
    await ask(setting, { descriptors: descriptors("k=1") });
    const { statuses } = await ask(setting, { descriptors: descriptors("k=1") });
    expect(statuses[0]).toMatchObject({
      code: OK,
      currentLimit: { name: "slow" },
      durationUntilReset: { seconds: 3_600 },
    });
  });

  it("denies quotas only when all of them are used up, and then takes nothing else", async () => {
    const setting = await open();
    const all = { descriptors: descriptors("east=1", "west=1", "tenant=acme") };
    expect(codes(await ask(setting, all))).toEqual([OK, OK, OK, OK]);
    expect(codes(await ask(setting, all))).toEqual([OK, OVER_LIMIT, OK, OK]);
    expect(codes(await ask(setting, all))).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OK]);
    expect(codes(await ask(setting, all))).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OK]);
    const { statuses } = await ask(setting, { descriptors: descriptors("tenant=acme") });
    expect(statuses[0]?.limitRemaining).toBe(2);
  });

  it("gives back what it took if the last quota was used up meanwhile", async () => {
    const store = new MemoryCounters({ clock: new ManualClock(startMs) });
    let meanwhile: (() => void) | undefined;
    const counters: CounterStore = {
      local: true,
      take: (limits, options) => store.take(limits, options),
      peek(limits) {
        const answer = store.peek(limits);
        meanwhile?.();
        meanwhile = undefined;
        return answer;
      },
      give: (receipt) => store.give(receipt),
      charge: (limits) => store.charge(limits),
      block: (limits, forMs) => store.block(limits, forMs),
      reset: (limits) => store.reset(limits),
      read: (limit) => store.read(limit),
      close: () => store.close(),
    };
    const setting = await open({ counters });
    meanwhile = () => {
      setting.limiter.checkSync({ policies: ["envoy:shop/east"], dimensions: { descriptor: "east=1" } });
    };
    const asked = { descriptors: descriptors("east=1", "tenant=acme", "tokens=1") };
    expect(codes(await ask(setting, asked))).toEqual([OVER_LIMIT, OVER_LIMIT, OK, OK]);
    const { statuses } = await ask(setting, { descriptors: descriptors("tenant=acme", "tokens=1") });
    // What is charged although it was denied stays charged.
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([4, 98]);
  });

  it("takes from no quota if another descriptor denies, and denies a single quota on its own", async () => {
    const setting = await open();
    const denied = { descriptors: descriptors("east=1", "plan=none") };
    expect(codes(await ask(setting, denied))).toEqual([OVER_LIMIT, OK, OVER_LIMIT]);
    const quota = { descriptors: descriptors("east=1") };
    expect(codes(await ask(setting, quota))).toEqual([OK, OK]);
    expect(codes(await ask(setting, quota))).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });

  it("holds a descriptor to all of its limits, and reports the deciding one", async () => {
    const setting = await open();
    const several = { descriptors: descriptors("several=1") };
    for (let i = 0; i < 2; i++) expect((await ask(setting, several)).overallCode).toBe(OK);
    expect((await ask(setting, several)).statuses[0]).toMatchObject({
      code: OVER_LIMIT,
      currentLimit: { name: "quick" },
    });
    await clock.advance(1_000);
    expect((await ask(setting, several)).overallCode).toBe(OK);
    await clock.advance(1_000);
    const { statuses } = await ask(setting, several);
    expect(statuses[0]).toMatchObject({
      code: OVER_LIMIT,
      // 3 in 15 minutes, in a unit that Envoy has.
      currentLimit: { name: "slow", requestsPerUnit: 12, unit: Unit.HOUR },
    });
  });
});

describe("while the kill switch is on", () => {
  const all = descriptors("tenant=a", "watched=x", "east=1", "plan=partner", "nobody=knows");

  it.each([
    ["closed", OVER_LIMIT],
    ["open", OK],
  ] as const)("%s answers every descriptor alike, and takes nothing", async (mode, code) => {
    const setting = await open({ envoyHeaders: true });
    setting.limiter.force({ mode, untilMs: startMs + 90_000 });
    for (const request of [all, descriptors("nobody=knows"), [{ ...all[0], hitsAddend: 0 }]]) {
      const answer = await ask(setting, { descriptors: request });
      expect(new Set(codes(answer))).toEqual(new Set([code]));
    }
    const [status] = (await ask(setting, { descriptors: descriptors("tenant=a") })).statuses;
    expect(status?.durationUntilReset).toEqual({ seconds: 90, nanos: 0 });
    clock.advance(90_000);
    const { statuses } = await ask(setting, { descriptors: descriptors("tenant=a") });
    expect(statuses).toMatchObject([{ code: OK, limitRemaining: 4 }]);
  });
});

describe("addends", () => {
  it("of a request hold for every descriptor that has none, and 0 means 1", async () => {
    const setting = await open();
    const { statuses } = await ask(setting, {
      hitsAddend: 2,
      descriptors: [descriptors("tenant=a")[0]!, { ...descriptors("tenant=b")[0], hitsAddend: 3 }],
    });
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([3, 2]);
    expect((await ask(setting, { descriptors: descriptors("tenant=a") })).statuses[0]?.limitRemaining).toBe(2);
  });

  it("add up if two descriptors have the same counter", async () => {
    const setting = await open();
    const twice = { descriptors: descriptors("tenant=a", "tenant=a"), hitsAddend: 2 };
    expect((await ask(setting, twice)).statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([1, 1]);
    expect(codes(await ask(setting, twice))).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
  });

  it("of 0, explicitly, only peek, and can deny what is taken with them", async () => {
    const setting = await open();
    const look = { ...descriptors("user=ada")[0], hitsAddend: 0 };
    const both = { descriptors: [look, ...descriptors("tenant=acme")] };
    for (let i = 0; i < 3; i++)
      expect((await ask(setting, { descriptors: [look] })).statuses[0]).toMatchObject({ code: OK, limitRemaining: 2 });
    const first = await ask(setting, both);
    expect(first.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([2, 4]);
    await ask(setting, { descriptors: descriptors("user=ada"), hitsAddend: 2 });
    expect(codes(await ask(setting, both))).toEqual([OVER_LIMIT, OVER_LIMIT, OK]);
    const { statuses } = await ask(setting, { descriptors: descriptors("tenant=acme") });
    expect(statuses[0]?.limitRemaining).toBe(3);
  });

  it("that are negative give back, down to an empty counter, and are always OK", async () => {
    const setting = await open();
    const giving = (hits: number) => ({ ...descriptors("user=ada")[0], hitsAddend: hits, isNegativeHits: true });
    await ask(setting, { descriptors: descriptors("user=ada"), hitsAddend: 2 });
    expect(codes(await ask(setting, { descriptors: descriptors("user=ada") }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    const back = await ask(setting, { descriptors: [giving(1)] });
    expect(back).toMatchObject({ overallCode: OK, statuses: [{ code: OK, limitRemaining: 1 }] });
    const more = await ask(setting, { descriptors: [giving(100)] });
    expect(more).toMatchObject({ overallCode: OK, statuses: [{ code: OK, limitRemaining: 2 }] });
    await ask(setting, { descriptors: descriptors("user=ada"), hitsAddend: 2 });
    // Nothing is given back, the counter is full, and it is OK all the same.
    const none = await ask(setting, { descriptors: [giving(0)] });
    expect(none).toMatchObject({ overallCode: OK, statuses: [{ code: OK, limitRemaining: 0 }] });
  });

  it("that come after the cost has arisen are charged if charge_denied says so", async () => {
    const setting = await open();
    const look = { descriptors: [{ ...descriptors("tokens=1")[0], hitsAddend: 0 }] };
    const done = { descriptors: [{ ...descriptors("tokens=1")[0], hitsAddend: 60 }] };
    expect(codes(await ask(setting, done))).toEqual([OK, OK]);
    expect(codes(await ask(setting, look))).toEqual([OK, OK]);
    expect(codes(await ask(setting, done))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(await ask(setting, look))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    // The same if another descriptor only peeks.
    const other = { ...descriptors("tokens=2")[0], hitsAddend: 60 };
    const looking = { ...descriptors("tenant=a")[0], hitsAddend: 0 };
    for (const code of [OK, OVER_LIMIT])
      expect((await ask(setting, { descriptors: [looking, other] })).overallCode).toBe(code);
    expect(codes(await ask(setting, { descriptors: [{ ...other, hitsAddend: 0 }] }))).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });

  it("that are denied are charged to those limits of a descriptor alone that say so", async () => {
    const setting = await open();
    const mixed = (hitsAddend: number) => ({ descriptors: [{ ...descriptors("mixed=1")[0], hitsAddend }] });
    expect(codes(await ask(setting, mixed(2)))).toEqual([OK, OK]);
    expect(codes(await ask(setting, mixed(1)))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    await clock.advance(3_600_000);
    expect((await ask(setting, mixed(1))).statuses[0]).toMatchObject({
      code: OK,
      limitRemaining: 0,
      currentLimit: { name: "kept" },
    });
  });

  it("that give back make room for what the same request takes, and peeks take none of it", async () => {
    const setting = await open();
    const [user] = descriptors("user=ada");
    await ask(setting, { descriptors: [user!], hitsAddend: 2 });
    const giving = { ...user, hitsAddend: 1, isNegativeHits: true };
    const look = { ...user, hitsAddend: 0 };
    expect(codes(await ask(setting, { descriptors: [giving, user!] }))).toEqual([OK, OK, OK]);
    expect(codes(await ask(setting, { descriptors: [look, look] }))).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
    await ask(setting, { descriptors: [giving] });
    expect(codes(await ask(setting, { descriptors: [look, look, user!] }))).toEqual([OK, OK, OK, OK]);
  });

  it.each([
    [2n ** 53n, "9007199254740992"],
    [2n ** 64n - 1n, "18446744073709551615"],
  ])("of %d, as bytes, are a bad request and nothing else", async (hits) => {
    const { listening } = await open();
    const varint = (value: bigint): number[] =>
      value < 128n ? [Number(value)] : [Number(value % 128n) + 128, ...varint(value / 128n)];
    const wrapped = [8, ...varint(hits)];
    const descriptor = [10, 3, 10, 1, 97, 26, wrapped.length, ...wrapped];
    const bytes = Buffer.from([10, 4, ...Buffer.from("shop"), 18, descriptor.length, ...descriptor]);
    const client = new Client(listening.address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    closing.push(() => client.close());
    const { path } = grpcService(RateLimitServiceDefinition).shouldRateLimit;
    const send = (body: Buffer) =>
      new Promise<status>((resolve) =>
        client.makeUnaryRequest(
          path,
          (message: Buffer) => message,
          (reply) => reply,
          body,
          (error) => resolve(error?.code ?? status.OK),
        ),
      );
    expect(await send(bytes)).toBe(status.INVALID_ARGUMENT);
    expect(await send(Buffer.from([0xff, 0xff]))).toBe(status.INVALID_ARGUMENT);
  });

  it("are charged by a limit that is brought along as by the one that it stands in for", async () => {
    const setting = await open();
    const limit = { requestsPerUnit: 50, unit: RateLimitUnit.DAY };
    const asked = (hitsAddend: number) => ({ descriptors: [{ ...descriptors("tokens=1")[0], limit, hitsAddend }] });
    expect(codes(await ask(setting, asked(40)))).toEqual([OK, OK]);
    expect(codes(await ask(setting, asked(40)))).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(await ask(setting, asked(0)))).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });

  it.each([
    [{ hitsAddend: 100_001, descriptors: descriptors("a=1") }, "hits_addend must be at most 100000, but is 100001"],
    [
      { descriptors: [{ ...descriptors("a=1")[0], hitsAddend: 2 ** 40 }] },
      "descriptors[0].hits_addend must be at most 100000, but is 1099511627776",
    ],
  ])("that are too large are refused by name", async (request, message) => {
    const { client } = await open();
    const asked = RateLimitRequest.fromPartial({ domain: "shop", ...request });
    const error = await client.fail(RateLimitServiceDefinition, "shouldRateLimit", asked);
    expect([error.code, error.details]).toEqual([status.INVALID_ARGUMENT, message]);
  });
});

describe("limits that a request brings along", () => {
  const overridden = (requestsPerUnit: number, unit: RateLimitUnit, entry = "tenant=acme") => ({
    descriptors: [{ ...descriptors(entry)[0], limit: { requestsPerUnit, unit } }],
  });

  it("stand in for what is written, and are counted by their unit", async () => {
    const setting = await open();
    const first = await ask(setting, overridden(2, RateLimitUnit.HOUR));
    expect(first.statuses[0]).toMatchObject({
      limitRemaining: 1,
      currentLimit: { requestsPerUnit: 2, unit: Unit.HOUR, name: "" },
    });
    expect((await ask(setting, overridden(2, RateLimitUnit.HOUR))).overallCode).toBe(OK);
    expect((await ask(setting, overridden(2, RateLimitUnit.HOUR))).overallCode).toBe(OVER_LIMIT);
    expect((await ask(setting, overridden(3, RateLimitUnit.HOUR))).statuses[0]).toMatchObject({ limitRemaining: 0 });
    expect((await ask(setting, overridden(3, RateLimitUnit.DAY))).statuses[0]).toMatchObject({ limitRemaining: 2 });
    expect((await ask(setting, overridden(2, RateLimitUnit.HOUR, "tenant=b"))).overallCode).toBe(OK);
    const written = await ask(setting, { descriptors: descriptors("tenant=acme") });
    expect(written.statuses[0]?.limitRemaining).toBe(4);
  });

  it("replace nothing, even if what they stand in for does", async () => {
    const setting = await open();
    const brought = overridden(9, RateLimitUnit.HOUR, "plan=partner").descriptors;
    const { statuses } = await ask(setting, { descriptors: [...brought, ...descriptors("tenant=acme")] });
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([8, 4]);
  });

  it("hold for descriptors of which nothing is written, each domain for itself", async () => {
    const setting = await open();
    const one = overridden(1, RateLimitUnit.DAY, "unheard=of");
    expect((await ask(setting, one)).overallCode).toBe(OK);
    expect((await ask(setting, one)).overallCode).toBe(OVER_LIMIT);
    expect((await ask(setting, { ...one, domain: "elsewhere" })).overallCode).toBe(OK);
  });

  it("need a unit", async () => {
    const { client } = await open();
    const asked = RateLimitRequest.fromPartial({ domain: "shop", ...overridden(1, RateLimitUnit.UNKNOWN) });
    const { code, details } = await client.fail(RateLimitServiceDefinition, "shouldRateLimit", asked);
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(details).toContain("descriptors[0].limit.unit");
  });

  it("are remembered as long as they are used, and in bounded number", () => {
    const find = (requests: number) => findOverrideLimit(requests, RateLimitUnit.MINUTE, "open");
    const used = find(1);
    for (let i = 0; i < 1_500; i++) {
      find(i);
      expect(find(1)).toBe(used);
    }
    const unused = find(7_000_000);
    for (let i = 0; i < 5_000; i++) find(i);
    expect(find(7_000_000)).not.toBe(unused);
  });
});

describe("domains without descriptors", () => {
  it("are decided by ordinary policies, with entries for dimensions", async () => {
    const setting = await open();
    const asked = { domain: "plain", descriptors: descriptors("method=GET|user=ada", "method=POST|user=ada") };
    const { statuses } = await ask(setting, asked);
    expect(statuses[0]).toMatchObject({ limitRemaining: 1, currentLimit: { name: "api", unit: Unit.MINUTE } });
    expect(statuses[1]).toEqual({ code: OK, limitRemaining: 0 });
    expect((await ask(setting, asked)).overallCode).toBe(OK);
    expect((await ask(setting, asked)).overallCode).toBe(OVER_LIMIT);
  });

  it("are unknown if nothing names them and other domains have descriptors", async () => {
    const setting = await open({ files: [text] });
    const { statuses } = await ask(setting, { domain: "elsewhere", descriptors: descriptors("user=ada") });
    expect(statuses).toEqual([{ code: OK, limitRemaining: 0 }]);
  });

  it("fall to the default if nothing names them and no domain has descriptors", async () => {
    const setting = await open({ files: ["policies: []\ndefault: { limits: [{ by: [user], windows: [1/h] }] }"] });
    const asked = { domain: "elsewhere", descriptors: descriptors("user=ada") };
    expect((await ask(setting, asked)).overallCode).toBe(OK);
    expect((await ask(setting, asked)).overallCode).toBe(OVER_LIMIT);
  });

  it("treat an invalid address as missing, rather than refuse it and let the request pass", async () => {
    const file = `policies: [{ id: p, domain: d, limits: [{ by: [ip], windows: [1/h] }], on_failure: open }]`;
    const setting = await open({ files: [file] });
    const asked = (ip: string) => ask(setting, { domain: "d", descriptors: descriptors(`ip=${ip}`) });
    expect((await asked("192.0.2.1")).overallCode).toBe(OK);
    expect((await asked("nonsense")).overallCode).toBe(OK);
    for (const ip of ["more nonsense", "x".repeat(5_000), "192.0.2.1"])
      expect((await asked(ip)).overallCode).toBe(OVER_LIMIT);
  });

  it("count values by their digest that are too long, and a key that is there again by its number", async () => {
    const file = `policies: [{ id: p, domain: d, limits: [{ by: [k, k.2], windows: [1/h] }], on_failure: open }]`;
    const setting = await open({ files: [file] });
    const long = "x".repeat(100_000);
    const asked = (end: string) => ({ domain: "d", descriptors: descriptors(`k=${long}${end}|k=2`) });
    expect((await ask(setting, asked("a"))).overallCode).toBe(OK);
    expect((await ask(setting, asked("a"))).overallCode).toBe(OVER_LIMIT);
    expect((await ask(setting, asked("b"))).overallCode).toBe(OK);
    const other = { domain: "d", descriptors: descriptors(`k=${long}a|k=3`) };
    expect((await ask(setting, other)).overallCode).toBe(OK);
  });

  it("match endpoints by their path, however long the query is", async () => {
    const setting = await open({ files: [files] });
    const asked = { domain: "d", descriptors: descriptors(`user=u|endpoint=/files/7?q=${"x".repeat(5_000)}`) };
    expect((await ask(setting, asked)).overallCode).toBe(OK);
    expect((await ask(setting, asked)).overallCode).toBe(OVER_LIMIT);
  });

  it.each([
    ["too long", `/public/${"x".repeat(5_000)}/../../files/7`],
    ["to be read in too many ways", `//h${"/a;b\\c/..%2fd;e%5c../%2e%2e//".repeat(140)}`],
  ])("deny an endpoint that is %s: an error Envoy would let pass", async (_how, path) => {
    const setting = await open({ files: [files] });
    const asked = { domain: "d", descriptors: descriptors(`user=u|endpoint=${path}`) };
    expect(await ask(setting, asked)).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT }] });
    const looking = { ...asked, descriptors: asked.descriptors.map((one) => ({ ...one, hitsAddend: 0 })) };
    expect((await ask(setting, looking)).overallCode).toBe(OVER_LIMIT);
  });

  const files = `policies: [{ id: p, domain: d, match: { endpoint: /files/** }, limits: [{ by: [user], windows: [1/h] }], on_failure: open }]\ndefault: none`;
});

describe("policies that are replaced while a request is under way", () => {
  it.each([
    ["by a file without its domain", ordinary],
    ["by a file where the descriptor has another limit", text.replaceAll("key: east", "key: south")],
    ["by none", "policies: []\ndefault: none"],
  ])("%s leave an answer of some sort", async (_name, next) => {
    const store = new MemoryCounters({ clock: new ManualClock(startMs) });
    const replacing: CounterStore = Object.assign(Object.create(store), {
      local: true,
      peek(limits: Limits) {
        const answer = store.peek(limits);
        setting.limiter.usePolicies(parsePolicyFiles([{ text: next }]).policySet);
        return answer;
      },
      take: store.take.bind(store),
      charge: store.charge.bind(store),
    });
    const setting = await open({ counters: replacing });
    const giving = { ...descriptors("tenant=acme")[0], hitsAddend: 1, isNegativeHits: true };
    const asked = { descriptors: [giving, ...descriptors("east=1", "user=ada", "tokens=1")] };
    expect(codes(await ask(setting, asked))).toEqual([OK, OK, OK, OK, OK]);
  });
});

describe("an invalid question", () => {
  it.each<[string, Asked, string]>([
    ["no domain", { domain: "", descriptors: descriptors("a=1") }, "domain is empty"],
    ["no descriptors", { descriptors: [] }, "descriptors are missing"],
    [
      "too many descriptors",
      { descriptors: descriptors(...Array<string>(101).fill("a=1")) },
      "descriptors must be at most 100, but are 101",
    ],
    [
      "too many entries",
      { descriptors: descriptors(Array<string>(33).fill("a=1").join("|")) },
      "descriptors[0].entries must be at most 32, but are 33",
    ],
  ])("is refused: %s", async (_name, request, message) => {
    const setting = await open();
    const asked = RateLimitRequest.fromPartial({ domain: "shop", ...request });
    const error = await setting.client.fail(RateLimitServiceDefinition, "shouldRateLimit", asked);
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toContain(message);
    expect((await ask(setting, { descriptors: descriptors("tenant=a") })).overallCode).toBe(OK);
  });

  it("is not a descriptor with hostile names and values", async () => {
    const setting = await open();
    const names = ["__proto__", "constructor", "toString", "\u0000", "a|b=c\\"];
    const entries = names.map((name) => ({ entries: [{ key: name, value: name }] }));
    expect((await ask(setting, { descriptors: entries })).overallCode).toBe(OK);
    expect((await ask(setting, { domain: "plain", descriptors: entries })).overallCode).toBe(OK);
    const long = `tenant=${"x".repeat(500_000)}`;
    for (let i = 0; i < 5; i++) expect((await ask(setting, { descriptors: descriptors(long) })).overallCode).toBe(OK);
    expect((await ask(setting, { descriptors: descriptors(long) })).overallCode).toBe(OVER_LIMIT);
    expect((await ask(setting, { descriptors: descriptors(`${long}y`) })).overallCode).toBe(OK);
    expect((await ask(setting, { descriptors: [{ entries: [] }] })).statuses).toEqual([
      { code: OK, limitRemaining: 0 },
    ]);
  });
});

describe("headers for Envoy to add", () => {
  it("are those of the descriptor nearest its limit, if they are asked for", async () => {
    const setting = await open({ envoyHeaders: true });
    await clock.advance(500);
    const { responseHeadersToAdd } = await ask(setting, { descriptors: descriptors("tenant=a", "user=a", "x=1") });
    expect(responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`)).toEqual([
      "RateLimit-Limit: 2",
      "RateLimit-Remaining: 1",
      "RateLimit-Reset: 3600",
    ]);
    const none = await ask(setting, { descriptors: descriptors("x=1", "plan=partner") });
    expect(none.responseHeadersToAdd).toEqual([]);
  });

  it("are absent otherwise", async () => {
    const { responseHeadersToAdd } = await ask(await open(), { descriptors: descriptors("tenant=a") });
    expect(responseHeadersToAdd).toEqual([]);
  });
});

describe("a caller's deadline", () => {
  it("is what is left of it for each question in turn", async () => {
    const store = new MemoryCounters();
    const waited: (number | undefined)[] = [];
    const slow = async <T>(deadlineMs: number | undefined, answer: () => T): Promise<T> => {
      waited.push(deadlineMs);
      await new Promise((resolve) => setTimeout(resolve, 40));
      return answer();
    };
    const counters: CounterStore = Object.assign(Object.create(store), {
      local: false,
      take: (limits: Limits, options?: TakeOptions) => slow(options?.deadlineMs, () => store.take(limits)),
      peek: (limits: Limits, options?: TakeOptions) => slow(options?.deadlineMs, () => store.peek(limits)),
      charge: (limits: Limits) => slow(undefined, () => store.charge(limits)),
    });
    const setting = await open({ counters });
    const giving = { ...descriptors("tenant=a")[0], isNegativeHits: true };
    const request = RateLimitRequest.fromPartial({ domain: "shop", descriptors: [giving, ...descriptors("user=a")] });
    const answer = await shouldRateLimit(request, createTestService(setting.limiter), {
      caller: access.identify(undefined),
      deadlineMs: 10_000,
    });
    expect(answer.overallCode).toBe(OK);
    const [, look = Infinity, taking = Infinity] = waited;
    expect(look).toBeLessThan(9_970);
    expect(taking).toBeLessThan(look - 30);
  });
});

describe("while counters are unavailable", () => {
  const counters = failingCounters();

  it("answers OK if policies fail open, and UNAVAILABLE if one fails closed", async () => {
    const setting = await open({ counters });
    const giving = { ...descriptors("tenant=a")[0], isNegativeHits: true };
    expect((await ask(setting, { descriptors: descriptors("tenant=a", "user=b", "watched=1") })).overallCode).toBe(OK);
    expect((await ask(setting, { descriptors: [giving] })).overallCode).toBe(OK);
    for (const asked of [descriptors("kept=1"), descriptors("tenant=a", "kept=1")]) {
      const request = RateLimitRequest.fromPartial({ domain: "shop", descriptors: asked });
      const error = await setting.client.fail(RateLimitServiceDefinition, "shouldRateLimit", request);
      expect(error.code).toBe(status.UNAVAILABLE);
    }
  });

  it("fails a limit that is brought along as the one that it stands in for", async () => {
    const setting = await open({ counters });
    const limit = { requestsPerUnit: 1, unit: RateLimitUnit.DAY };
    expect((await ask(setting, { descriptors: [{ ...descriptors("tenant=a")[0], limit }] })).overallCode).toBe(OK);
    const request = RateLimitRequest.fromPartial({
      domain: "shop",
      descriptors: [{ ...descriptors("kept=1")[0], limit }],
    });
    const error = await setting.client.fail(RateLimitServiceDefinition, "shouldRateLimit", request);
    expect(error.code).toBe(status.UNAVAILABLE);
  });
});

describe("on a server of Valkey", () => {
  it("is atomic across descriptors as well, however many ask at once", async () => {
    const server = await startServer({ flavor: "valkey" });
    closing.push(() => server.close());
    const setting = await open({
      counters: redis(server.url, { deadlineMs: 10_000 }),
      files: [text.replace(/unit: (minute|hour)/g, "unit: year")],
    });
    const asked = (user: number) => ({ descriptors: descriptors("tenant=acme", `user=${user}`) });
    // Each user has 2 a year, the tenant 5: denials take nothing, so exactly 5 pass.
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(setting, asked(i % 4))));
    expect(answers.filter(({ overallCode }) => overallCode === OK)).toHaveLength(5);
    const rest = await ask(setting, {
      descriptors: [{ ...descriptors("tenant=acme")[0], hitsAddend: 2, isNegativeHits: true }],
    });
    expect(rest).toMatchObject({ overallCode: OK, statuses: [{ limitRemaining: 2 }] });
    const users = await Promise.all(
      [0, 1, 2, 3].map((i) => ask(setting, { descriptors: [{ ...descriptors(`user=${i}`)[0], hitsAddend: 0 }] })),
    );
    expect(users.reduce((sum, { statuses }) => sum + statuses[0]!.limitRemaining, 0)).toBe(3);
  });
});
