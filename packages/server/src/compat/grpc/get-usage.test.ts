import { status } from "@grpc/grpc-js";
import { GetUsageRequest, type GetUsageResponse, RateLimiterDefinition as service } from "@sluice/protocol";
import type { UsageSum } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  applyStored,
  createRoleActor,
  type StartedAdmin,
  startAdmin,
  team,
  tokenForRole,
} from "../../control-plane/admin-api/testing/start-admin.ts";
import type { Role } from "../../data-plane/access/roles.ts";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";

const minuteMs = 60_000;
let admin: StartedAdmin;
let server: ListeningTransport;
let client: GrpcTestClient;
/** A minute of an hour ago. */
let startMs: number;

beforeEach(async () => {
  admin = await startAdmin();
  server = await listenForTest("grpc", wholeGrpcServer(admin.service, {}, admin.control));
  client = connectForTest(server.address);
  startMs = (Math.floor(Date.now() / minuteMs) - 60) * minuteMs;
  const limits = [{ by: ["tenant"], windows: ["5/s", "100/h"] }];
  const policies = [
    { id: "ours", owner: team, domain: "shop", limits },
    { id: "theirs", owner: "others", domain: "shop", deny: { tenant: ["mallory"] }, limits },
  ];
  await admin.control.configuration.import(createRoleActor("admin"), JSON.stringify({ policies }));
  await applyStored(admin);
});

afterEach(async () => {
  client.close();
  await server.close();
  await admin.close();
});

async function store(...sums: readonly Partial<UsageSum>[]): Promise<void> {
  const whole = sums.map((sum) => ({
    ...{ policy: "ours", limit: "tenant", dimension: "tenant", subject: "acme", startMs },
    ...{ decided: 7, allowed: 4, denied: 3, cost: 9, degraded: 1, shadowDenied: 2, denials: [], ...sum },
  }));
  await admin.store.note((note) => note.addUsage({ node: "n", boot: "b", sequence: 1, sums: whole }));
}

const shop = { domain: "shop", dimensions: { tenant: "acme" } };
const ask = (sent: Partial<GetUsageRequest>, role: Role = "viewer"): Promise<GetUsageResponse> =>
  client.call(service, "getUsage", GetUsageRequest.fromPartial({ ...shop, ...sent }), { token: tokenForRole(role) });

async function refusal(sent: Partial<GetUsageRequest>, asked = client): Promise<readonly [number, string]> {
  const request = GetUsageRequest.fromPartial({ ...shop, fromUnixMs: startMs, ...sent });
  const { code, details } = await asked.fail(service, "getUsage", request, { token: tokenForRole("viewer") });
  return [code, details];
}

describe("GetUsage with a period", () => {
  it("reports every window, and what was decided in the period", async () => {
    await store({}, { startMs: startMs + 2 * minuteMs }, { startMs: startMs - minuteMs }, { subject: "globex" });
    const { quotas, sums } = await ask({
      policyId: "ours",
      fromUnixMs: startMs + 1,
      toUnixMs: startMs + 2 * minuteMs + 1,
    });
    expect(quotas.map(({ policyId, window, used }) => [policyId, window, used])).toEqual([
      ["ours", "5/s", 0],
      ["ours", "100/h", 0],
    ]);
    expect(sums).toEqual([
      {
        ...{ policyId: "ours", dimension: "tenant", subject: "acme" },
        ...{ fromUnixMs: startMs, toUnixMs: startMs + 3 * minuteMs },
        ...{ decided: 14, allowed: 8, denied: 6, cost: 18, degraded: 2, shadowDenied: 4 },
      },
    ]);
  });

  it("reports the windows alone if no period is given", async () => {
    await store({});
    const { quotas, sums } = await ask({ policyId: "ours" });
    expect([quotas.length, sums]).toEqual([2, []]);
  });

  it("reports every policy that applies, but to an editor the sums of its team's policies alone", async () => {
    await store({}, { policy: "theirs", decided: 8 }, { policy: "elsewhere" });
    const seenBy = async (role: Role): Promise<unknown> =>
      (await ask({ fromUnixMs: startMs }, role)).sums.map(({ policyId, decided }) => [policyId, decided]);
    const all = [
      ["ours", 7],
      ["theirs", 8],
    ];
    expect(await seenBy("viewer")).toEqual(all);
    expect(await seenBy("admin")).toEqual(all);
    expect(await seenBy("editor")).toEqual([["ours", 7]]);
    expect((await ask({ policyId: "theirs", fromUnixMs: startMs }, "editor")).sums).toEqual([]);
    await expect(seenBy("check")).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
  });

  it("has the denials of a subject on a deny list", async () => {
    await store({ policy: "theirs", subject: "mallory", allowed: 0, denied: 7 });
    const { sums } = await ask({ policyId: "theirs", dimensions: { tenant: "mallory" }, fromUnixMs: startMs });
    expect(sums).toMatchObject([{ policyId: "theirs", subject: "mallory", denied: 7 }]);
  });

  it("names the field of a period that makes no sense", async () => {
    const bad = [
      { fromUnixMs: 0, toUnixMs: startMs },
      { fromUnixMs: startMs, toUnixMs: startMs },
      { fromUnixMs: startMs + 366 * 24 * 60 * minuteMs },
      { fromUnixMs: 1 },
      { toUnixMs: -1 },
      { dimensions: { user: "ada" }, policyId: "ours" },
    ];
    const refused = [];
    for (const sent of bad) {
      const [code, details] = await refusal(sent);
      refused.push([code, details.split(/[ :]/)[0]]);
    }
    expect(refused).toEqual(
      ["from_unix_ms", "from_unix_ms", "from_unix_ms", "from_unix_ms", "to_unix_ms", "dimensions"].map((field) => [
        status.INVALID_ARGUMENT,
        field,
      ]),
    );
    expect((await refusal({ policyId: "nowhere" }))[0]).toBe(status.NOT_FOUND);
  });

  it("says so on a server without a policy store, which still reports windows", async () => {
    const { access } = admin.service;
    const bare = await listenForTest("grpc", wholeGrpcServer(createTestService(admin.limiter, { access })));
    const other = connectForTest(bare.address);
    try {
      expect(await refusal({}, other)).toEqual([status.UNIMPLEMENTED, expect.stringContaining("--store")]);
      const request = GetUsageRequest.fromPartial(shop);
      const { quotas } = await other.call(service, "getUsage", request, { token: tokenForRole("viewer") });
      expect(quotas).toHaveLength(4);
    } finally {
      other.close();
      await bare.close();
    }
  });
});
