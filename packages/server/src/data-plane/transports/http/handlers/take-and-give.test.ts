import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  ManualClock,
  MemoryCounters,
  StoreUnavailable,
} from "sluice";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../../../testing/test-service.ts";
import type { Access } from "../../../access/access.ts";
import { rolePermissions } from "../../../access/roles.ts";
import { type StartedHttp, startHttp } from "../testing/start-http.ts";

const policies = {
  policies: [{ id: "orders", match: { endpoint: "/orders" }, limits: [{ by: ["user"], windows: ["10/h"] }] }],
  default: "none",
};

/** The token says what the caller may do. */
const access: Access = {
  identify: (token = "check") => ({ name: token, may: new Set(rolePermissions[token as "check"]) }),
};

let server: StartedHttp;
let count = 0;
let user: string;
const logged: object[] = [];

beforeAll(async () => {
  const log = { ...silentLog, info: (_event: string, fields: object = {}) => logged.push(fields) };
  server = await startHttp(createLimiter({ policies }), { access, log });
});

afterAll(() => server.close());

beforeEach(() => {
  user = `user-${++count}`;
  logged.length = 0;
});

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

async function post(path: string, body: unknown, token = "check", url = server.url): Promise<Answer> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? {} : JSON.parse(text) };
}

const orders = (): CheckRequest => ({ dimensions: { user, endpoint: "/orders" } });

async function remaining(): Promise<unknown> {
  return (await post("/v1/check", { ...orders(), preview: true })).body.remaining;
}

describe("an id of POST /v1/check", () => {
  it("is remembered as long as id_ttl_ms says, alone and in a batch", async () => {
    const clock = new ManualClock();
    const counting = await startHttp(createLimiter({ policies, clock, counters: new MemoryCounters({ clock }) }));
    const ask = async (more: object, id_ttl_ms?: unknown) =>
      post("/v1/check", { ...orders(), id: "o1", id_ttl_ms, ...more }, "check", counting.url);
    const askBatch = async (id_ttl_ms: unknown) =>
      post("/v1/check", { checks: [{ ...orders(), id: "o2", id_ttl_ms }] }, "check", counting.url);
    try {
      for (const replayed of [false, true]) {
        expect((await ask({}, 5_000)).body).toMatchObject({ replayed });
        expect((await askBatch(5_000)).body).toMatchObject({ answers: [{ decision: { replayed } }] });
      }
      clock.advance(5_001);
      expect((await ask({}, 5_000)).body).toMatchObject({ replayed: false });
      expect((await askBatch(5_000)).body).toMatchObject({ answers: [{ decision: { replayed: false } }] });
      for (const wrong of [0, 86_400_001, 1.5, "5"]) {
        const { status, body } = await ask({}, wrong);
        expect([status, body.problems]).toMatchObject([400, [{ field: "id_ttl_ms" }]]);
      }
    } finally {
      await counting.close();
    }
  });
});

describe("POST /v1/charge", () => {
  it("takes unconditionally, even what does not fit, and gives back below 0", async () => {
    const { status, headers } = await post("/v1/charge", { ...orders(), cost: 7 });
    expect([status, headers.get("content-type")]).toEqual([204, null]);
    expect(await remaining()).toBe(3);
    expect((await post("/v1/charge", { ...orders(), cost: -3 })).status).toBe(204);
    expect(await remaining()).toBe(6);
    await post("/v1/charge", { ...orders(), cost: 100 });
    expect((await post("/v1/check", orders())).status).toBe(429);
  });

  it("costs what the policy says, else 1, by default", async () => {
    await post("/v1/charge", orders());
    expect(await remaining()).toBe(9);
  });

  it.each([
    ["cost", { cost: 0 }],
    ["cost", { cost: 100_001 }],
    ["cost", { cost: -100_001 }],
    ["cost", { cost: 1.5 }],
    ["dimensions.ip", { dimensions: { ip: "junk" } }],
    ["preview", { preview: true }],
    ["id", { id: "x" }],
  ])("names what is wrong: %s", async (field, wrong) => {
    const { status, body } = await post("/v1/charge", wrong);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: "invalid_request", problems: [{ field }] });
  });
});

describe("a receipt", () => {
  it("is returned if asked for, and gives back once what was taken", async () => {
    expect((await post("/v1/check", orders())).body.receipt).toBeUndefined();
    const { receipt } = (await post("/v1/check", { ...orders(), cost: 4, receipt: true })).body;
    expect(receipt).toEqual(expect.any(String));
    expect(await remaining()).toBe(5);
    expect(await post("/v1/give-back", { receipt })).toMatchObject({ status: 200, body: { given_back: true } });
    expect(await remaining()).toBe(9);
    expect((await post("/v1/give-back", { receipt })).body).toEqual({ given_back: false });
    expect(await remaining()).toBe(9);
  });

  it("is answered in a batch as well, for those that ask", async () => {
    const { body } = await post("/v1/check", { checks: [{ ...orders(), receipt: true }, orders()] });
    expect(body.answers).toMatchObject([{ decision: { receipt: expect.any(String) } }, { decision: {} }]);
    expect((body.answers as { decision: object }[])[1]!.decision).not.toHaveProperty("receipt");
  });

  it("is not there for a denial", async () => {
    const { status, body } = await post("/v1/check", { ...orders(), cost: 11, receipt: true });
    expect(status).toBe(429);
    expect(body).not.toHaveProperty("receipt");
  });

  it("that was never issued is void, and a malformed one is refused", async () => {
    expect((await post("/v1/give-back", { receipt: "made up" })).body).toEqual({ given_back: false });
    for (const [field, body] of [
      ["receipt", {}],
      ["receipt", { receipt: 7 }],
      ["receipt", { receipt: "r".repeat(4_097) }],
      ["recipt", { recipt: "x" }],
    ] as const) {
      const { status, body: told } = await post("/v1/give-back", body);
      expect(status).toBe(400);
      expect((told.problems as { field: string }[]).map((problem) => problem.field)).toContain(field);
    }
  });
});

describe("POST /v1/reset", () => {
  it("forgets the counters, for operators, and logs who asked for it", async () => {
    await post("/v1/charge", { ...orders(), cost: 9 });
    const { status, body } = await post("/v1/reset", orders(), "operator");
    expect([status, body]).toEqual([200, { counters: [expect.objectContaining({ policy: "orders" })] }]);
    expect(await remaining()).toBe(10);
    expect(logged).toMatchObject([{ caller: "operator", dimensions: { user } }]);
  });

  it.each(["check", "viewer"])("is refused to a caller with the role %s, before the body is read", async (role) => {
    const { status, body } = await post("/v1/reset", "junk", role);
    expect(status).toBe(403);
    expect(body).toMatchObject({ code: "permission_denied", detail: expect.stringContaining("operator") });
    expect(logged).toEqual([]);
  });

  it.each(["cost", "id", "preview", "polices"])("does not know %s", async (field) => {
    const { status, body } = await post("/v1/reset", { ...orders(), [field]: 1 }, "operator");
    expect(status).toBe(400);
    expect(body.problems).toMatchObject([{ field }]);
  });
});

describe("remote counters", () => {
  const asked: unknown[] = [];
  const memory = new MemoryCounters();
  let away = false;
  async function orAway<T>(answer: () => T): Promise<T> {
    if (away) throw new StoreUnavailable("storage_timeout", "redis://hunter2@10.1.2.3");
    return answer();
  }
  const counters: CounterStore = {
    local: false,
    take: (limits, options) => {
      asked.push(options?.deadlineMs);
      return orAway(() => memory.take(limits, options));
    },
    peek: (limits) => orAway(() => memory.peek(limits)),
    give: (receipt) => orAway(() => memory.give(receipt)),
    charge: (limits) => orAway(() => memory.charge(limits)),
    block: (limits, forMs) => orAway(() => memory.block(limits, forMs)),
    reset: (limits) => orAway(() => memory.reset(limits)),
    read: (limit) => orAway(() => memory.read(limit)),
    close() {},
  };
  let elsewhere: StartedHttp;

  beforeAll(async () => {
    const [orders] = policies.policies;
    const closed = { policies: [{ ...orders, on_failure: "closed" }] };
    elsewhere = await startHttp(createLimiter({ policies: closed, counters }), { access });
  });

  afterAll(() => elsewhere.close());

  it("are waited for no longer than the caller says", async () => {
    expect((await post("/v1/check", { ...orders(), deadline_ms: 40 }, "check", elsewhere.url)).status).toBe(200);
    expect((await post("/v1/check", orders(), "check", elsewhere.url)).status).toBe(200);
    expect(asked).toEqual([40, undefined]);
    for (const deadline_ms of [0, 60_001, 1.5, "40"]) {
      const { status, body } = await post("/v1/check", { ...orders(), deadline_ms }, "check", elsewhere.url);
      expect(status).toBe(400);
      expect(body.problems).toMatchObject([{ field: "deadline_ms" }]);
    }
  });

  it("that are unavailable cause 503 and a wait, without giving anything away", async () => {
    away = true;
    try {
      for (const [path, body] of [
        ["/v1/charge", orders()],
        ["/v1/give-back", { receipt: "m1" }],
        ["/v1/reset", orders()],
      ] as const) {
        const { status, headers, body: told } = await post(path, body, "admin", elsewhere.url);
        expect(status, path).toBe(503);
        expect(headers.get("retry-after"), path).toBe("5");
        expect(told, path).toMatchObject({ code: "store_unavailable" });
        expect(JSON.stringify(told)).not.toContain("hunter2");
      }
    } finally {
      away = false;
    }
  });
});
