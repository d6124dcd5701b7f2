import { type DeepPartial, LeaseRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { createLimiter, type Limiter, ManualClock } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";
import type { Access } from "../access/access.ts";
import { rolePermissions } from "../access/roles.ts";
import { type StartedHttp, startHttp } from "./http/testing/start-http.ts";

const policies = {
  policies: [
    { id: "api", domain: "api", limits: [{ by: ["user"], windows: ["10000/h"] }] },
    { id: "exact", domain: "exact", counters: "exact", limits: [{ by: ["user"], windows: ["10000/h"] }] },
  ],
  default: "none",
};

/** The token says what the caller may do. */
const access: Access = {
  identify: (token = "check") => ({ name: token, may: new Set(rolePermissions[token as "check"] ?? []) }),
};

const leaseTimes = { leaseMs: 10_000, staleMs: 60_000 };

/** A request with names as on the wire. */
interface Asked {
  readonly check?: unknown;
  readonly want?: number;
  readonly hold_ms?: number;
  readonly settled?: unknown;
}

interface Told {
  readonly answer?: Readonly<Record<string, unknown>>;
  readonly code?: string;
  readonly fields?: readonly string[];
}

const ada = { domain: "api", dimensions: { user: "ada" } };
let limiter: Limiter;

beforeEach(() => {
  // Nothing refills while a test runs, however long that takes.
  limiter = createLimiter({ policies, clock: new ManualClock() });
});

function describeLeases(protocol: string, open: () => Promise<(asked: Asked, token?: string) => Promise<Told>>): void {
  describe(`leases over ${protocol}`, () => {
    let ask: Awaited<ReturnType<typeof open>>;
    beforeEach(async () => {
      ask = await open();
    });

    it("are granted, renewed and given back", async () => {
      const first = (await ask({ check: ada, want: 40 })).answer!;
      expect(first).toMatchObject({ granted: 40, unspent: 40, lease_ms: 10_000, stale_ms: 60_000, cost: 1 });
      expect(first.decision).toMatchObject({ policy: "api", scope: "user", limit: 10_000, remaining: 9_960 });
      const renewed = { epoch: first.epoch, spent: 30, kept: 10, returned: 0 };
      const second = (await ask({ check: ada, want: 20, hold_ms: 1_000, settled: renewed })).answer!;
      expect(second).toMatchObject({ granted: 20, unspent: 30, lease_ms: 1_000, stale_ms: 0 });
      const rest = { epoch: second.epoch, spent: 0, kept: 0, returned: 30 };
      expect((await ask({ check: ada, want: 0, settled: rest })).answer).toMatchObject({ granted: 0, unspent: 0 });
      expect(await limiter.peek(ada)).toMatchObject({ used: 30 });
    });

    it("need the permission to check", async () => {
      expect(await ask({ check: ada, want: 1 }, "nobody")).toMatchObject({ code: "permission_denied" });
    });

    it("are not granted for limits that are counted exactly", async () => {
      const exact = { ...ada, domain: "exact" };
      expect(await ask({ check: exact, want: 1 })).toMatchObject({ code: "not_leasable" });
    });

    it.each<[Asked, string]>([
      [{ want: 1 }, "check"],
      [{ check: ada }, "want"],
      [{ check: { dimensions: { ip: "x" } }, want: 1 }, "check.dimensions.ip"],
      [{ check: { domain: "x".repeat(129) }, want: 1 }, "check.domain"],
      [{ check: { ...ada, cost: 2 }, want: 1 }, "check.cost"],
      [{ check: { ...ada, id: "i" }, want: 1 }, "check.id"],
      [{ check: { ...ada, preview: true }, want: 1 }, "check.preview"],
      [{ check: { ...ada, details: true }, want: 1 }, "check.details"],
      [{ check: { ...ada, receipt: true }, want: 1 }, "check.receipt"],
      [{ check: { ...ada, id_ttl_ms: 5 }, want: 1 }, "check.id_ttl_ms"],
      [{ check: ada, want: 1, hold_ms: 86_400_001 }, "hold_ms"],
      [{ check: ada, want: 1, settled: { epoch: 1, spent: 0, kept: 2_000_000_000, returned: 0 } }, "settled.kept"],
    ])("are refused with the field that is wrong: %j", async (asked, field) => {
      const { code, fields } = await ask(asked);
      expect(code).toBe("invalid_request");
      expect(fields).toContain(field);
    });
  });
}

describe("a server", () => {
  let grpc: ListeningTransport;
  let client: GrpcTestClient;
  let http: StartedHttp;
  afterEach(async () => {
    client?.close();
    await Promise.all([grpc?.close(), http?.close()]);
  });

  describeLeases("gRPC", async () => {
    grpc = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter, { access, leaseTimes })));
    client = connectForTest(grpc.address);
    return async (asked, token) => {
      const request = LeaseRequest.fromPartial(inCamelCase(asked) as DeepPartial<LeaseRequest>);
      const options = token === undefined ? {} : { token };
      try {
        const { leaseMs, staleMs, ...rest } = await client.call(service, "lease", request, options);
        return { answer: { ...rest, lease_ms: leaseMs, stale_ms: staleMs } };
      } catch (error) {
        const { metadata, details } = error as { metadata: { get(name: string): unknown[] }; details: string };
        return { code: String(metadata.get("sluice-code")[0]), fields: [details.split(" ", 1)[0]!] };
      }
    };
  });

  describeLeases("HTTP", async () => {
    http = await startHttp(limiter, { access, leaseTimes });
    return async (asked, token) => {
      const response = await fetch(`${http.url}/v1/lease`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(asked),
      });
      const body = (await response.json()) as Record<string, unknown>;
      if (response.ok) return { answer: body };
      const problems = (body.problems ?? []) as readonly { readonly field: string }[];
      return { code: String(body.code), fields: problems.map(({ field }) => field) };
    };
  });
});

function inCamelCase(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      inCamelCase(part),
    ]),
  );
}
