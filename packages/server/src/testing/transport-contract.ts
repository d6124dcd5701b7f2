import assert from "node:assert/strict";
import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  type ErrorCode,
  ManualClock,
  MemoryCounters,
  SluiceError,
  StoreUnavailable,
} from "sluice";
import { failingCounters } from "sluice/testing";
import type { Access } from "../data-plane/access/access.ts";
import { type Role, rolePermissions, roles } from "../data-plane/access/roles.ts";
import { createDecide } from "../data-plane/service/create-decide.ts";
import type { ServiceOptions } from "../data-plane/service/create-service.ts";
import type { Service } from "../data-plane/service/service.ts";
import { createMetrics } from "../observe/telemetry/metrics.ts";
import { createTestService } from "./test-service.ts";

/** A request over a transport. */
export type AskedCheck = Pick<CheckRequest, "domain" | "dimensions" | "cost" | "id" | "preview" | "policies">;

/** An answer, or an error. */
export interface CheckAnswer {
  readonly allowed?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly remaining?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly error?: { readonly code: ErrorCode | string; readonly message: string } | undefined;
}

/** A listening transport, and a client of it that keeps one connection. */
export interface TransportUnderTest {
  check(request: AskedCheck, token?: string): Promise<CheckAnswer>;
  close(): Promise<unknown>;
}

/** Features that a protocol may lack. */
export type Lack =
  /** Fields of requests. */
  | "cost"
  | "id"
  | "preview"
  | "policies"
  | "tokens"
  /** Refusing an invalid value. */
  | "strict values"
  /** Fields of answers. */
  | "limit"
  | "remaining"
  | "retryAfterMs"
  | "error code";

export interface ContractOptions {
  /** Features that the protocol lacks; conversations about them are left out, fields are not compared. */
  readonly lacks?: readonly Lack[];
  /** Waits are in whole seconds, rounded up. */
  readonly wholeSeconds?: boolean;
}

/** The two functions of a test runner that are needed; vitest's will do. */
export interface TestRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
}

/**
 * Tests that a transport keeps the contract: `describeTransport("grpc", open, { describe, it })`. `open` starts it
 * around the given service, and connects.
 */
export function describeTransport(
  name: string,
  open: (service: Service) => Promise<TransportUnderTest>,
  { describe, it }: TestRunner,
  { lacks = [], wholeSeconds = false }: ContractOptions = {},
): void {
  describe(`the transport contract: ${name}`, () => {
    for (const conversation of conversations) {
      if (conversation.needs.some((need) => lacks.includes(need))) continue;
      it(conversation.name, async () => {
        const transport = await open(conversation.service());
        try {
          await conversation.run({
            ask: (request, token) => transport.check(request, token),
            async expect(request, wanted, because): Promise<void> {
              const { error, ...answer } = await transport.check(request);
              assert.equal(error, undefined, `${because}: ${JSON.stringify(error)}`);
              for (const field of ["allowed", "limit", "remaining", "retryAfterMs"] as const) {
                if (!(field in wanted) || (field !== "allowed" && lacks.includes(field))) continue;
                const inUnits = field === "retryAfterMs" && wholeSeconds ? upToSecond(wanted[field]) : wanted[field];
                assert.equal(answer[field], inUnits, `${field}, ${because}`);
              }
            },
            async refused(request, code, mentions, token): Promise<void> {
              const { error, allowed } = await transport.check(request, token);
              assert.ok(error !== undefined, `expected ${code}, but it was answered: allowed ${allowed}`);
              if (!lacks.includes("error code")) assert.equal(error.code, code, error.message);
              assert.match(error.message, mentions);
            },
          });
        } finally {
          await transport.close();
        }
      });
    }
  });
}

function upToSecond(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1_000) * 1_000;
}

interface Talk {
  ask(request: AskedCheck, token?: string): Promise<CheckAnswer>;
  expect(request: AskedCheck, wanted: CheckAnswer, because: string): Promise<void>;
  refused(request: AskedCheck, code: ErrorCode, mentions: RegExp, token?: string): Promise<void>;
}

interface Conversation {
  readonly name: string;
  readonly needs: readonly Lack[];
  service(): Service;
  run(talk: Talk): Promise<void>;
}

type Policies = readonly Readonly<Record<string, unknown>>[];
type ServiceParts = Partial<Omit<ServiceOptions, "limiter">>;

/** A service on policies, with time standing still. */
function createContractService(policies: Policies, parts: ServiceParts = {}, counters?: CounterStore): Service {
  const clock = new ManualClock();
  const limiter = createLimiter({
    policies: { policies, default: "none" },
    clock,
    counters: counters ?? new MemoryCounters({ clock }),
  });
  return createTestService(limiter, parts);
}

/** While the kill switch is on, for another minute. */
function forcedService(mode: "open" | "closed"): Service {
  const clock = new ManualClock();
  const limiter = createLimiter({ policies: { policies: perUser, default: "none" }, clock });
  limiter.force({ mode, untilMs: clock.epochMs() + 60_000 });
  return createTestService(limiter);
}

const perUser: Policies = [{ id: "calls", limits: [{ by: ["user"], windows: ["3/m"] }] }];
const ada = { dimensions: { user: "ada" } };
const bob = { dimensions: { user: "bob" } };

const conversations: readonly Conversation[] = [
  {
    name: "allows up to the limit, then denies and says how long to wait",
    needs: [],
    service: () => createContractService(perUser),
    async run({ expect }) {
      for (const remaining of [2, 1, 0])
        await expect(ada, { allowed: true, limit: 3, remaining, retryAfterMs: undefined }, "there is room");
      const denied = { allowed: false, limit: 3, remaining: 0, retryAfterMs: 20_000 };
      await expect(ada, denied, "three a minute are used up, and one comes back in 20 s");
      await expect(ada, denied, "a denial takes nothing, so the wait stays as it is");
      await expect(bob, { allowed: true, remaining: 2 }, "another subject has another counter");
    },
  },
  {
    name: "charges all limits of a request or none",
    needs: [],
    service: () =>
      createContractService([
        {
          id: "calls",
          limits: [
            { by: ["user"], windows: ["2/h"] },
            { by: ["tenant"], windows: ["4/h"] },
          ],
        },
      ]),
    async run({ expect }) {
      const by = (user: string): AskedCheck => ({ dimensions: { user, tenant: "acme" } });
      for (const allowed of [true, true, false, false, false]) await expect(by("ada"), { allowed }, "two an hour");
      await expect(by("bob"), { allowed: true }, "denials of ada have cost the tenant nothing");
      await expect(by("bob"), { allowed: true }, "denials of ada have cost the tenant nothing");
      await expect(by("eve"), { allowed: false }, "the tenant's four are used up");
    },
  },
  {
    name: "takes the cost of a request",
    needs: ["cost"],
    service: () => createContractService([{ id: "calls", limits: [{ by: ["user"], windows: ["5/h"] }] }]),
    async run({ expect }) {
      await expect({ ...ada, cost: 3 }, { allowed: true, remaining: 2 }, "five less three");
      await expect({ ...ada, cost: 3 }, { allowed: false, remaining: 2 }, "two are left");
      await expect({ ...ada, cost: 2 }, { allowed: true, remaining: 0 }, "two are left");
    },
  },
  {
    name: "denies a cost that never fits, without a wait",
    needs: ["cost"],
    service: () => createContractService([{ id: "calls", limits: [{ by: ["user"], windows: ["5/h"] }] }]),
    async run({ expect }) {
      await expect({ ...ada, cost: 6 }, { allowed: false, retryAfterMs: undefined }, "waiting does not help");
      await expect({ ...ada, cost: 5 }, { allowed: true, remaining: 0 }, "nothing was taken");
    },
  },
  {
    name: "allows a request that no policy limits",
    needs: [],
    service: () => createContractService([{ id: "staff", unlimited: true }]),
    async run({ expect }) {
      const unlimited = { allowed: true, limit: undefined, remaining: undefined, retryAfterMs: undefined };
      for (let i = 0; i < 5; i++) await expect(ada, unlimited, "the policy is unlimited");
    },
  },
  {
    name: "refuses an unknown policy",
    needs: ["policies"],
    service: () => createContractService(perUser),
    async run({ expect, refused }) {
      await refused({ ...ada, policies: ["nowhere"] }, "policy_not_found", /nowhere/);
      await expect({ ...ada, policies: ["calls"] }, { allowed: true, remaining: 2 }, "nothing was charged before");
    },
  },
  {
    name: "refuses an invalid request, and names the field",
    needs: ["strict values"],
    service: () => createContractService([{ id: "calls", limits: [{ by: ["ip"], windows: ["3/m"] }] }]),
    async run({ expect, refused }) {
      await refused({ dimensions: { ip: "not an address" } }, "invalid_request", /\bip\b/);
      await expect({ dimensions: { ip: "192.0.2.1" } }, { allowed: true, remaining: 2 }, "the next is served");
    },
  },
  {
    name: "refuses an invalid cost, and names it",
    needs: ["cost"],
    service: () => createContractService(perUser),
    async run({ expect, refused }) {
      await refused({ ...ada, cost: -1 }, "invalid_request", /\bcost\b/);
      await refused({ ...ada, cost: 100_001 }, "invalid_request", /\bcost\b/);
      await expect(ada, { allowed: true, remaining: 2 }, "nothing was charged");
    },
  },
  {
    name: "charges an id once, and refuses it for another request",
    needs: ["id"],
    service: () => createContractService(perUser),
    async run({ expect, refused }) {
      await expect({ ...ada, id: "order-1" }, { allowed: true, remaining: 2 }, "the first time");
      await expect({ ...ada, id: "order-1" }, { allowed: true, remaining: 2 }, "the same again");
      await refused({ ...bob, id: "order-1" }, "idempotency_conflict", /\bid\b/);
      await expect(ada, { allowed: true, remaining: 1 }, "the id was charged once");
    },
  },
  {
    name: "takes nothing for a preview",
    needs: ["preview"],
    service: () => createContractService(perUser),
    async run({ expect }) {
      await expect({ ...ada, preview: true }, { allowed: true, remaining: 3 }, "the state before");
      await expect({ ...ada, preview: true }, { allowed: true, remaining: 3 }, "the first one took nothing");
      await expect(ada, { allowed: true, remaining: 2 }, "neither did the second");
    },
  },
  {
    name: "requires a token, and the role that a check needs",
    needs: ["tokens"],
    service: () => createContractService(perUser, { access: tokensByRole }),
    async run({ ask, refused }) {
      await refused(ada, "unauthenticated", /token/);
      await refused(ada, "unauthenticated", /token/, "guessed");
      await refused(ada, "permission_denied", /role check/, "viewer");
      for (const role of ["check", "operator", "admin"]) assert.equal((await ask(ada, role)).allowed, true, role);
      assert.equal((await ask(ada, "check")).allowed, false, "refused checks were not charged, allowed ones were");
    },
  },
  {
    name: "sheds load with a separate error, which is not a denial",
    needs: [],
    service() {
      const limiter = createLimiter({ policies: { policies: perUser } });
      const metrics = createMetrics({ version: "0", sources: { generation: () => 1 } });
      const decide = createDecide({ limiter, metrics, maxChecksPerSecond: 1, nowMs: () => 0 });
      return createTestService(limiter, { decide, metrics });
    },
    async run({ expect, refused }) {
      await expect(ada, { allowed: true }, "one a second is decided");
      await refused(ada, "overloaded", /retry shortly/);
      await refused(bob, "overloaded", /retry shortly/);
    },
  },
  {
    name: "answers as the policy says while counters are unavailable, and a denial then is not an error",
    needs: [],
    service: () =>
      createContractService(
        ["open", "closed"].map((mode) => ({
          id: mode,
          domain: mode,
          on_failure: mode,
          limits: [{ by: ["user"], windows: ["1/h"] }],
        })),
        {},
        awayCounters,
      ),
    async run({ expect }) {
      await expect({ ...ada, domain: "open" }, { allowed: true }, "it fails open");
      await expect({ ...ada, domain: "open" }, { allowed: true }, "it keeps failing open");
      await expect({ ...ada, domain: "closed" }, { allowed: false }, "it fails closed");
    },
  },
  {
    name: "obeys the kill switch: denies everything, with a wait, as an answer and not an error",
    needs: [],
    service: () => forcedService("closed"),
    async run({ expect }) {
      await expect(ada, { allowed: false, retryAfterMs: 60_000 }, "it is closed");
      await expect({ ...ada, domain: "elsewhere" }, { allowed: false }, "even an unlimited request");
    },
  },
  {
    name: "obeys the kill switch: allows everything, and counts nothing",
    needs: [],
    service: () => forcedService("open"),
    async run({ expect }) {
      for (let i = 0; i < 5; i++) await expect(ada, { allowed: true, retryAfterMs: undefined }, "it is open");
      await expect({ ...ada, domain: "elsewhere" }, { allowed: true }, "even an unlimited request");
    },
  },
  {
    name: "reveals nothing about internal errors, and serves the next request",
    needs: [],
    service() {
      let broken = true;
      const service = createContractService(perUser);
      return {
        ...service,
        decide: {
          ...service.decide,
          one(request) {
            if (!broken) return service.decide.one(request);
            broken = false;
            throw new Error("redis://sluice:hunter2@10.1.2.3 said something odd");
          },
        },
      };
    },
    async run({ ask, expect }) {
      const { error } = await ask(ada);
      assert.ok(error !== undefined, "an error is reported as one");
      assert.doesNotMatch(JSON.stringify(error), /hunter2|10\.1\.2\.3/);
      await expect(ada, { allowed: true, remaining: 2 }, "the next is served");
    },
  },
];

/** Tokens have the names of their roles. */
const tokensByRole: Access = {
  identify(token) {
    const role = roles.find((one): one is Role => one === token);
    if (role === undefined) throw new SluiceError("unauthenticated", "a valid token is required");
    return { name: role, may: new Set(rolePermissions[role]) };
  },
};

/** Stands for any remote store in an outage. */
const awayCounters: CounterStore = failingCounters(() => new StoreUnavailable("storage_timeout", "did not answer"));
