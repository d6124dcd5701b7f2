import { type ServiceError, status } from "@grpc/grpc-js";
import {
  CalendarUnit,
  ChargeRequest,
  CheckBatchRequest,
  CheckRequest,
  type Decision,
  Dimension,
  Reason,
  State,
  RateLimiterDefinition as service,
} from "@sluice/protocol";
import { BadRequest, Status } from "@sluice/protocol/status";
import { createLimiter, ManualClock, MemoryCounters } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Access, Caller } from "../../data-plane/access/access.ts";
import { rolePermissions } from "../../data-plane/access/roles.ts";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";

const startMs = Date.UTC(2026, 0, 15);
const policies = [
  {
    id: "calls",
    version: 7,
    domain: "calls",
    limits: [{ by: ["user"], windows: [{ limit: 3, per: "1m", name: "short" }] }],
  },
  {
    id: "queue",
    domain: "queue",
    limits: [{ by: ["user"], algorithm: "leaky_bucket", windows: [{ limit: 1, per: "1s", burst: 4 }] }],
  },
  {
    id: "daily",
    domain: "daily",
    limits: [
      {
        by: ["user"],
        algorithm: "fixed_window",
        windows: [{ limit: 5, per: { calendar: "month", time_zone: "Europe/Berlin" } }],
      },
    ],
  },
  {
    id: "once",
    domain: "once",
    limits: [{ by: ["user"], algorithm: "fixed_window", windows: [{ limit: 2, per: "never" }] }],
  },
  {
    id: "large",
    domain: "large",
    limits: [{ by: ["user"], algorithm: "fixed_window", windows: [{ limit: 5_000_000_000, per: "1h" }] }],
  },
  { id: "several", domain: "several", limits: [{ by: ["user"], windows: ["5/s", "20/m", "100/h"] }] },
  { id: "dark", domain: "dark", mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }] },
  {
    id: "api.read.v3",
    version: 47,
    domain: "api",
    match: { endpoint: "/api/**" },
    limits: [
      { by: ["user"], windows: ["10/s"] },
      { by: ["tenant"], windows: ["4/m"] },
    ],
  },
  {
    id: "orders",
    match: { endpoint: "/api/v1/orders" },
    limits: [
      { by: ["user"], windows: ["2/m"] },
      { by: ["ip"], windows: ["2/m"] },
    ],
  },
];

const operator: Caller = { name: "olga", may: new Set(rolePermissions.operator) };
const access: Access = {
  identify: (token) => (token === "olga" ? operator : { name: "ada", may: new Set(rolePermissions.check) }),
};

let clock: ManualClock;
let listening: ListeningTransport;
let client: GrpcTestClient;
let logged: unknown[];

beforeEach(async () => {
  clock = new ManualClock(startMs);
  logged = [];
  const limiter = createLimiter({
    policies: { policies, default: "none" },
    clock,
    counters: new MemoryCounters({ clock }),
  });
  const log = { debug() {}, info: (...line: unknown[]) => logged.push(line), warn() {}, error() {} };
  listening = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter, { access, log })));
  client = connectForTest(listening.address);
});

afterEach(async () => {
  client.close();
  await listening.close();
});

const check = (domain: string, more: Parameters<typeof CheckRequest.fromPartial>[0] = {}): Promise<Decision> =>
  client.call(service, "check", CheckRequest.fromPartial({ domain, dimensions: { user: "ada" }, ...more }));

describe("Check", () => {
  it("fills in all known fields of an allowance, and no others", async () => {
    expect(await check("calls", { cost: 2 })).toEqual({
      allowed: true,
      reason: Reason.WITHIN_LIMITS,
      cost: 2,
      policy: "calls",
      version: 7,
      scope: "user",
      limit: 3,
      remaining: 1,
      used: 2,
      retryAfterMs: undefined,
      resetAfterMs: 40_000,
      resetAtMs: startMs + 40_000,
      window: {
        limit: 3,
        perMs: 60_000,
        calendar: undefined,
        never: undefined,
        timeZone: "",
        burst: 3,
        name: "short",
        label: "",
      },
      moreAfterMs: 20_000,
      limitRemaining: undefined,
      queue: undefined,
      state: State.NORMAL,
      denyCount: 0,
      replayed: false,
      preview: false,
      degraded: "",
      shadow: [],
      limits: [],
      receipt: "",
    });
  });

  it("answers with the wait, the state and the denied cost of a denial", async () => {
    await check("calls", { cost: 3 });
    expect(await check("calls", { cost: 2 })).toMatchObject({
      allowed: false,
      reason: Reason.OVER_LIMIT,
      remaining: 0,
      retryAfterMs: 40_000,
      state: State.THROTTLED,
      denyCount: 2,
    });
    expect(await check("calls", { cost: 4 })).toMatchObject({
      allowed: false,
      reason: Reason.NEVER_FITS,
      retryAfterMs: undefined,
      denyCount: 6,
    });
  });

  it("reports places in a queue, calendar windows, quotas that never refill, and denials in shadow mode", async () => {
    await check("queue");
    expect((await check("queue")).queue).toEqual({ position: 2, delayMs: 1_000 });
    expect((await check("daily")).window).toMatchObject({ calendar: CalendarUnit.MONTH, timeZone: "Europe/Berlin" });
    const once = await check("once", { cost: 2 });
    expect([once.window?.never, once.window?.perMs]).toEqual([true, undefined]);
    await check("dark");
    expect(await check("dark")).toMatchObject({
      allowed: true,
      shadow: [{ policy: "dark", version: 1, scope: "user", reason: Reason.OVER_LIMIT, retryAfterMs: 3_600_000 }],
    });
  });

  it("answers for every limit on request", async () => {
    const dimensions = { user: "ada", tenant: "acme", endpoint: "/api/v1" };
    const { limits, scope } = await check("api", { dimensions, details: true });
    expect(scope).toBe("tenant");
    expect(limits).toMatchObject([
      { policy: "api.read.v3", version: 47, scope: "user", algorithm: "gcra", allowed: true, remaining: 9, used: 1 },
      { policy: "api.read.v3", version: 47, scope: "tenant", reason: Reason.WITHIN_LIMITS, limit: 4, remaining: 3 },
    ]);
  });

  it("remembers an id for as long as requested", async () => {
    const asked = { id: "order-1", idTtlMs: 1_000 };
    expect(await check("calls", asked)).toMatchObject({ remaining: 2, replayed: false });
    expect(await check("calls", asked)).toMatchObject({ remaining: 2, replayed: true });
    clock.advance(1_001);
    expect(await check("calls", asked)).toMatchObject({ replayed: false });
  });

  it("uses the default domain and the policy's cost if none is named", async () => {
    const dimensions = { user: "ada", endpoint: "/api/v1/orders" };
    expect(await client.call(service, "check", CheckRequest.fromPartial({ dimensions }))).toMatchObject({
      policy: "orders",
      cost: 1,
    });
  });

  it("refuses 10 000 dimensions, long names and long values, and names them", async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`d${i}`, "x"]));
    const refusals = [];
    for (const dimensions of [many, { ["n".repeat(129)]: "x" }, { user: "u".repeat(4_097) }, { "": "x" }]) {
      const error = await client.fail(service, "check", CheckRequest.fromPartial({ dimensions }));
      expect(error.code).toBe(status.INVALID_ARGUMENT);
      refusals.push(error.details);
    }
    expect(refusals).toEqual([
      "dimensions must have at most 32 entries, but has 10000",
      "dimensions must have names of at most 128 characters, but one has 129",
      "dimensions.user must have at most 4096 characters, but has 4097",
      "dimensions must have no entry without a name",
    ]);
  });
});

describe("fields that are out of bounds", () => {
  it("are named as the message names them", async () => {
    const refusals = [];
    for (const bad of [
      { domain: "d".repeat(129) },
      { idTtlMs: 24 * 60 * 60 * 1_000 + 1, id: "x" },
      { id: "i".repeat(257) },
      { policies: Array.from({ length: 33 }, () => "calls") },
      { cost: 0 },
    ]) {
      const { code, details } = await client.fail(service, "check", CheckRequest.fromPartial(bad));
      refusals.push([code, details.split(" ")[0]]);
    }
    expect(refusals).toEqual(
      ["domain", "id_ttl_ms", "id", "policies", "cost"].map((field) => [status.INVALID_ARGUMENT, field]),
    );
  });
});

describe("CheckBatch", () => {
  it("answers every check in its place, including errors", async () => {
    const dimensions = { user: "ada" };
    const checks = [
      { domain: "calls", dimensions, cost: 3 },
      { domain: "calls", dimensions, cost: 200_000 },
      { domain: "calls", dimensions: { ip: "nonsense" } },
      { domain: "calls", dimensions, policies: ["nowhere"] },
      { domain: "calls", dimensions },
    ];
    const request = CheckBatchRequest.fromPartial({ sequence: 4_294_967_295, checks });
    const { sequence, results } = await client.call(service, "checkBatch", request);
    expect(sequence).toBe(4_294_967_295);
    expect(results.map(({ decision, error }) => decision?.allowed ?? error?.code)).toEqual([
      true,
      "invalid_request",
      "invalid_request",
      "policy_not_found",
      false,
    ]);
    expect(results[2]?.error?.fields).toEqual([
      { field: "dimensions.ip", message: expect.stringContaining("must be an IP address") },
    ]);
  });

  it("takes 1 to 1 000 checks", async () => {
    const one = CheckRequest.fromPartial({ domain: "dark", dimensions: { user: "ada" } });
    const batch = (count: number): CheckBatchRequest => ({
      sequence: 1,
      checks: Array.from({ length: count }, () => one),
      deadlineMs: 0,
    });
    expect((await client.call(service, "checkBatch", batch(1_000))).results).toHaveLength(1_000);
    for (const count of [0, 1_001]) {
      const { code, details } = await client.fail(service, "checkBatch", batch(count));
      expect([code, details]).toEqual([
        status.INVALID_ARGUMENT,
        `checks must hold 1 to 1000 entries, but holds ${count}`,
      ]);
    }
  });

  it("lists few fields in the errors of a large batch", async () => {
    const dimensions = { user: "u".repeat(5_000), tenant: "t".repeat(5_000), ip: "nonsense" };
    const request = CheckBatchRequest.fromPartial({ checks: Array.from({ length: 90 }, () => ({ dimensions })) });
    const { results } = await client.call(service, "checkBatch", request);
    const listed = results.reduce((sum, { error }) => sum + error!.fields.length, 0);
    expect([results.length, listed]).toEqual([90, 200]);
  });
});

describe("Charge and GiveBack", () => {
  it("charge after the fact, and give back an overcharge", async () => {
    const charge = (cost: number): Promise<unknown> =>
      client.call(
        service,
        "charge",
        ChargeRequest.fromPartial({ domain: "calls", dimensions: { user: "ada" }, policies: ["calls"], cost }),
      );
    await charge(3);
    expect(await check("calls", { preview: true })).toMatchObject({ allowed: false });
    await charge(-2);
    expect(await check("calls", { preview: true })).toMatchObject({ allowed: true, remaining: 2 });
  });

  it("give a take back by its receipt, once", async () => {
    const { receipt } = await check("calls", { cost: 3, receipt: true });
    expect(receipt).not.toBe("");
    expect(await client.call(service, "giveBack", { receipt })).toEqual({ given: true });
    expect(await client.call(service, "giveBack", { receipt })).toEqual({ given: false });
    expect(await check("calls", { preview: true })).toMatchObject({ remaining: 3 });
  });

  it("name the invalid field", async () => {
    const empty = await client.fail(service, "giveBack", { receipt: "" });
    expect([empty.code, empty.details]).toEqual([
      status.INVALID_ARGUMENT,
      "receipt must be what Decision.receipt held",
    ]);
    const far = await client.fail(service, "charge", ChargeRequest.fromPartial({ domain: "d".repeat(129) }));
    expect([far.code, far.details]).toEqual([status.INVALID_ARGUMENT, expect.stringMatching(/^domain must/)]);
    const zero = await client.fail(service, "charge", ChargeRequest.fromPartial({ cost: 0 }));
    expect([zero.code, zero.details]).toEqual([status.INVALID_ARGUMENT, expect.stringContaining("cost")]);
  });
});

describe("CheckRateLimit and its siblings", () => {
  const ada = { identifier: "ada", dimension: Dimension.USER, endpoint: "/api/v1/orders" };
  const token = "olga";

  it("limit a user, an address or a key on an endpoint, whatever the caller's clock says", async () => {
    const ask = (cost: number, timestamp: number): Promise<unknown> =>
      client.call(service, "checkRateLimit", { ...ada, cost, timestamp });
    const resetAt = (ms: number): number => Math.ceil((startMs + ms) / 1_000);
    expect(await ask(0, 0)).toEqual({
      allowed: true,
      currentCount: 1,
      limit: 2,
      remaining: 1,
      resetAt: resetAt(30_000),
      retryAfter: 0,
      degraded: false,
      degradedReason: "",
    });
    await ask(1, Date.UTC(2031, 1, 1) / 1_000);
    clock.advance(500);
    expect(await ask(1, 0)).toMatchObject({ allowed: false, remaining: 0, retryAfter: 30 });
    const ip = { ...ada, identifier: "192.0.2.1", dimension: Dimension.IP, cost: 1, timestamp: 0 };
    expect(await client.call(service, "checkRateLimit", ip)).toMatchObject({ allowed: true, remaining: 1 });
  });

  it("report what remains, and reset it for an operator, which is logged", async () => {
    await client.call(service, "checkRateLimit", { ...ada, cost: 2, timestamp: 0 });
    const remaining = { currentCount: 2, limit: 2, remaining: 0, resetAt: (startMs + 60_000) / 1_000 };
    expect(await client.call(service, "getRemainingQuota", ada, { token })).toEqual(remaining);
    const denied = await client.fail(service, "resetLimit", ada);
    expect([denied.code, denied.details]).toEqual([
      status.PERMISSION_DENIED,
      "this needs role operator, which ada does not have",
    ]);
    expect(await client.call(service, "resetLimit", ada, { token })).toEqual({ countersReset: 2 });
    expect(await client.call(service, "getRemainingQuota", ada, { token })).toMatchObject({ remaining: 2 });
    expect(JSON.stringify(logged)).toContain("olga");
  });

  it("name every invalid field", async () => {
    const bad = {
      identifier: "",
      dimension: Dimension.UNSPECIFIED,
      endpoint: "e".repeat(5_000),
      cost: 1,
      timestamp: 0,
    };
    const { code, details } = await client.fail(service, "checkRateLimit", bad);
    expect(code).toBe(status.INVALID_ARGUMENT);
    for (const field of ["identifier", "dimension", "endpoint"]) expect(details).toContain(`${field} must`);
    const ip = { ...bad, identifier: "999.1.1.1", dimension: Dimension.IP, endpoint: "" };
    expect((await client.fail(service, "checkRateLimit", ip)).details).toMatch(/^identifier must be an IP address/);
  });
});

function decodeFields({ metadata }: ServiceError): BadRequest["fieldViolations"] {
  const { details } = Status.decode(metadata.get("grpc-status-details-bin")[0] as Buffer);
  const told = details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.BadRequest"));
  return told === undefined ? [] : BadRequest.decode(told.value).fieldViolations;
}

describe("CheckAndIncrement and its siblings", () => {
  const noPeriod = { fromUnixMs: 0, toUnixMs: 0 };
  const key = { policyId: "api.read.v3", domain: "", dimensions: { user: "ada", tenant: "acme" } };
  const token = "olga";
  const ask = (requestId: string, cost = 1): Promise<unknown> =>
    client.call(service, "checkAndIncrement", { ...key, cost, requestId });

  it("decide by the policy that is named, and say which limit spoke", async () => {
    expect(await ask("", 4)).toEqual({
      allowed: true,
      remaining: 0,
      resetUnixMs: startMs + 60_000,
      retryAfterMs: 0,
      policyVersion: "api.read.v3#47",
      matchedQuota: {
        policyId: "api.read.v3",
        scope: "tenant",
        window: "4/m",
        limit: 4,
        used: 4,
        remaining: 0,
        resetUnixMs: startMs + 60_000,
      },
      degraded: false,
      degradedReason: "",
    });
    expect(await ask("")).toMatchObject({ allowed: false, retryAfterMs: 15_000, matchedQuota: { scope: "tenant" } });
    expect(await ask("", 11)).toMatchObject({ allowed: false, retryAfterMs: 0 });
  });

  it("cap numbers at what 32 bits hold", async () => {
    const large = { policyId: "large", domain: "", dimensions: { user: "ada" }, cost: 1, requestId: "" };
    expect(await client.call(service, "checkAndIncrement", large)).toMatchObject({
      remaining: 2_147_483_647,
      matchedQuota: { limit: 5_000_000_000, remaining: 4_999_999_999 },
    });
  });

  it("charge a request id once", async () => {
    expect(await ask("r1")).toMatchObject({ remaining: 3 });
    expect(await ask("r1")).toMatchObject({ remaining: 3 });
    const { code } = await client.fail(service, "checkAndIncrement", { ...key, cost: 2, requestId: "r1" });
    expect(code).toBe(status.FAILED_PRECONDITION);
  });

  it("have a separate status for a missing policy", async () => {
    const { code, metadata } = await client.fail(service, "checkAndIncrement", {
      ...key,
      policyId: "nowhere",
      cost: 1,
      requestId: "",
    });
    expect([code, metadata.get("sluice-code")]).toEqual([status.NOT_FOUND, ["policy_not_found"]]);
  });

  it("name the fields of their own messages when they refuse them", async () => {
    const unknown = { ...key, policyId: "nowhere" };
    const asked = [
      await client.fail(service, "checkAndIncrement", { ...unknown, cost: 1, requestId: "" }),
      await client.fail(service, "getUsage", { ...unknown, ...noPeriod }, { token }),
      await client.fail(service, "resetKey", unknown, { token }),
    ];
    for (const error of asked)
      expect(decodeFields(error)).toEqual([{ field: "policy_id", description: 'no policy has the id "nowhere"' }]);
    const long = { ...key, cost: 1, requestId: "r".repeat(257) };
    const refused = await client.fail(service, "checkAndIncrement", long);
    expect(refused.details).toMatch(/^request_id must be a text of 1 to 256 characters/);
    expect(decodeFields(refused).map(({ field }) => field)).toEqual(["request_id"]);
  });

  it("report the state of every limit, and reset them for an operator", async () => {
    await ask("", 3);
    const usage = await client.call(service, "getUsage", { ...key, ...noPeriod }, { token });
    expect(usage.quotas).toMatchObject([
      { policyId: "api.read.v3", scope: "user", limit: 10, used: 3, remaining: 7 },
      { policyId: "api.read.v3", scope: "tenant", limit: 4, used: 3, remaining: 1, resetUnixMs: startMs + 45_000 },
    ]);
    expect((await client.fail(service, "getUsage", { ...key, ...noPeriod })).code).toBe(status.PERMISSION_DENIED);
    expect((await client.fail(service, "resetKey", key)).code).toBe(status.PERMISSION_DENIED);
    expect(await client.call(service, "resetKey", key, { token })).toEqual({ countersReset: 2 });
    expect(
      (await client.call(service, "getUsage", { ...key, ...noPeriod }, { token })).quotas.map(({ used }) => used),
    ).toEqual([0, 0]);
    expect(JSON.stringify(logged)).toContain("olga");
  });

  it("GetUsage reports every window of a limit", async () => {
    const key = { policyId: "several", domain: "", dimensions: { user: "ada" } };
    await client.call(service, "checkAndIncrement", { ...key, cost: 3, requestId: "" });
    const { quotas } = await client.call(service, "getUsage", { ...key, ...noPeriod }, { token });
    expect(quotas).toMatchObject([
      { window: "5/s", limit: 5, used: 3, remaining: 2 },
      { window: "20/m", limit: 20, used: 3, remaining: 17 },
      { window: "100/h", limit: 100, used: 3, remaining: 97 },
    ]);
    expect(quotas.map(({ resetUnixMs }) => resetUnixMs - startMs)).toEqual([600, 9_000, 108_000]);
  });

  it("use the policies of a domain if none is named, and reset their counters", async () => {
    const calls = { policyId: "", domain: "calls", dimensions: { user: "ada" } };
    const used = async (): Promise<unknown> =>
      (await client.call(service, "getUsage", { ...calls, ...noPeriod }, { token })).quotas.map((one) => [
        one.policyId,
        one.used,
      ]);
    expect(await client.call(service, "checkAndIncrement", { ...calls, cost: 2, requestId: "" })).toMatchObject({
      policyVersion: "calls#7",
    });
    expect(await used()).toEqual([["calls", 2]]);
    const elsewhere = await client.call(service, "resetKey", { ...calls, domain: "" }, { token });
    expect(elsewhere).toEqual({ countersReset: 0 });
    expect(await used()).toEqual([["calls", 2]]);
    expect(await client.call(service, "resetKey", calls, { token })).toEqual({ countersReset: 1 });
    expect(await used()).toEqual([["calls", 0]]);
    const long = { ...calls, domain: "d".repeat(129) };
    expect((await client.fail(service, "resetKey", long, { token })).code).toBe(status.INVALID_ARGUMENT);
  });
});
