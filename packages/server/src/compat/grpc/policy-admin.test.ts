import { status } from "@grpc/grpc-js";
import {
  FailPolicy,
  Policy,
  type PolicyAck,
  PolicyAdminDefinition,
  RateLimiterDefinition,
  RuleType,
} from "@sluice/protocol";
import { SluiceError } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  applyStored,
  createRoleActor,
  type StartedAdmin,
  startAdmin,
  team,
  tokenForRole,
} from "../../control-plane/admin-api/testing/start-admin.ts";
import type { Access } from "../../data-plane/access/access.ts";
import type { Role } from "../../data-plane/access/roles.ts";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";

let admin: StartedAdmin;
let server: ListeningTransport;
let client: GrpcTestClient;

beforeEach(async () => {
  admin = await startAdmin();
  server = await listenForTest("grpc", wholeGrpcServer(admin.service, {}, admin.control));
  client = connectForTest(server.address);
});

afterEach(async () => {
  client.close();
  await server.close();
  await admin.close();
});

const read: Partial<Policy> = {
  policyId: "api.read.v3",
  ruleType: RuleType.FIXED_WINDOW,
  windows: [{ spanMs: 60_000, limit: 2, burst: undefined }],
  dimensions: ["user", "tenant", "ip"],
  failPolicy: FailPolicy.CLOSED,
  costMap: { "/embed": 10 },
  ownerTeam: team,
};

function configure(sent: Partial<Policy>, role: Role = "editor"): Promise<PolicyAck> {
  return client.call(PolicyAdminDefinition, "configurePolicy", Policy.fromPartial(sent), { token: tokenForRole(role) });
}

async function refusal(sent: Partial<Policy>, role: Role = "editor"): Promise<{ code: number; details: string }> {
  const options = { token: tokenForRole(role) };
  const { code, details } = await client.fail(
    PolicyAdminDefinition,
    "configurePolicy",
    Policy.fromPartial(sent),
    options,
  );
  return { code, details };
}

async function list(ownerTeam = "", role: Role = "viewer"): Promise<readonly Policy[]> {
  const told: Policy[] = [];
  const stream = client.watch(PolicyAdminDefinition, "listPolicies", { ownerTeam }, { token: tokenForRole(role) });
  for await (const policy of stream) told.push(policy as Policy);
  return told;
}

describe("ConfigurePolicy", () => {
  it("creates a policy that decides as its fields say, and ListPolicies returns the same fields", async () => {
    const ack = await configure({ ...read, why: "first" });
    expect(ack).toMatchObject({ policyId: "api.read.v3", version: 1, dryRun: false, rolloutId: "" });
    expect(ack.generation).toBeGreaterThan(0);
    const [told] = await list();
    expect(told).toMatchObject({ ...read, version: 1, rolloutPct: 1, why: "first", fieldsComplete: true });
    expect(told!.createdAt!.seconds).toBeGreaterThan(1.6e9);

    await applyStored(admin);
    const check = (user: string): Promise<{ allowed: boolean }> =>
      client.call(
        RateLimiterDefinition,
        "checkAndIncrement",
        {
          policyId: "api.read.v3",
          dimensions: { user, tenant: user, ip: "203.0.113.7" },
          cost: 0,
          requestId: "",
          domain: "",
        },
        { token: tokenForRole("admin") },
      );
    expect([await check("a"), await check("b"), await check("c")].map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      // The address has used its two, whatever the user.
      false,
    ]);
  });

  it("replaces the version that the caller saw, and no other", async () => {
    await configure(read);
    const windows = [{ spanMs: 60_000, limit: 5, burst: undefined }];
    expect(await refusal({ ...read, windows })).toMatchObject({ code: status.ABORTED });
    expect(await configure({ ...read, windows, version: 1 })).toMatchObject({ version: 2 });
    expect(await refusal({ ...read, version: 1 })).toMatchObject({ code: status.ABORTED });
    expect(await list()).toMatchObject([{ version: 2, windows: [{ limit: 5 }] }]);
  });

  it("only answers in a dry run", async () => {
    expect(await configure({ ...read, dryRun: true })).toMatchObject({ version: 1, generation: 0, dryRun: true });
    expect(await list()).toEqual([]);
    expect(await refusal({ ...read, windows: [], dryRun: true })).toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  it("accepts any policy as a document, and returns it whole", async () => {
    const document = {
      id: "orders",
      description: "what for",
      match: { endpoint: "/v1/orders/**", method: ["POST"] },
      limits: [{ by: ["user"], windows: ["10/s", "100/day in UTC"], tiers: { gold: { windows: ["20/s"] } } }],
      deny: { user: ["mallory"] },
      on_failure: "open",
      owner: team,
    };
    // Calendar days and seconds cannot be combined under gcra.
    expect(await refusal({ policyId: "orders", documentJson: JSON.stringify(document) })).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining("calendar"),
    });
    document.limits[0]!.windows = ["10/s"];
    await configure({ policyId: "orders", documentJson: JSON.stringify(document) });
    const [told] = await list();
    expect(JSON.parse(told!.documentJson)).toEqual(document);
    expect(told).toMatchObject({ fieldsComplete: false, windows: [], dimensions: [], ownerTeam: team });
    // The answer can be sent back, which changes nothing.
    expect(await configure(told!)).toMatchObject({ version: 1, generation: 0 });
    expect(await configure({ ...told!, documentJson: JSON.stringify({ ...document, warn_at: 0.5 }) })).toMatchObject({
      version: 2,
    });
  });

  it("loses nothing that its fields cannot express", async () => {
    const document = {
      id: "p",
      owner: team,
      match: { endpoint: "/p" },
      deny: { user: ["mallory"] },
      limits: [{ by: ["user"], windows: ["10/s"] }],
    };
    await configure({ policyId: "p", documentJson: JSON.stringify(document) });
    const refused = await refusal({ ...read, policyId: "p", version: 1 });
    expect(refused).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(refused.details).toMatch(/document_json.*has more than the other fields can/);
    // A version conflict is reported first.
    expect(await refusal({ ...read, policyId: "p", version: 7 })).toMatchObject({ code: status.ABORTED });
    expect(JSON.parse((await list())[0]!.documentJson)).toEqual(document);
  });

  it("is rolled out to a share of subjects, and stays there until it is advanced", async () => {
    await configure(read);
    const ack = await configure({ ...read, version: 1, costMap: {}, rolloutPct: 0.25 });
    expect(ack.version).toBe(2);
    const rollout = await admin.control.rollouts.get(createRoleActor("admin"), ack.rolloutId);
    expect(rollout).toMatchObject({
      policy: "api.read.v3",
      toVersion: 2,
      steps: [{ percent: 25, holdMs: 0 }, { percent: 100 }],
    });
    // Another version has to wait until this one is complete or rolled back.
    expect(await refusal({ ...read, version: 1, costMap: { "/x": 2 } })).toMatchObject({ code: status.ALREADY_EXISTS });
  });

  it("refuses a document that is nested too deeply", async () => {
    const documentJson = `{"match":${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}}`;
    expect(await refusal({ policyId: "a", documentJson })).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining("document_json: is nested deeper than 64 levels"),
    });
  });

  it("names the invalid fields", async () => {
    const refused = await refusal({ ...read, windows: [{ spanMs: 0, limit: 1, burst: undefined }], rolloutPct: 2 });
    expect(refused).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(refused.details).toMatch(/rollout_pct.*windows\[0\]\.span_ms/);
  });

  it("is for editors of the team that owns the policy, and refusals are audited", async () => {
    expect(await refusal(read, "viewer")).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(await refusal(read, "operator")).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(await refusal({ ...read, ownerTeam: "others" })).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(await configure({ ...read, ownerTeam: "others" }, "admin")).toMatchObject({ version: 1 });
    const refused = async (): Promise<unknown> => {
      const { items } = await admin.control.audit.list(createRoleActor("admin"), { outcome: "refused" });
      return items.map(({ actor, action, from }) => [actor, action, from]).sort();
    };
    await expect
      .poll(refused, { timeout: 30_000 })
      .toEqual(["editor", "operator", "viewer"].map((actor) => [actor, "policy.put", "127.0.0.1"]));
  });
});

describe("ListPolicies", () => {
  it("returns all of a long list, in order, and the policies of one team", async () => {
    const ids = Array.from({ length: 250 }, (_, index) => `p${String(index).padStart(3, "0")}`);
    const policies = ids.map((id, index) => ({
      id,
      owner: index % 10 === 0 ? "ten" : team,
      limits: [{ by: ["user"], windows: ["1/s"] }],
    }));
    await admin.control.configuration.import(createRoleActor("admin"), JSON.stringify({ policies }));
    expect((await list()).map(({ policyId }) => policyId)).toEqual(ids);
    expect((await list("ten")).map(({ policyId }) => policyId)).toEqual(ids.filter((_, index) => index % 10 === 0));
  });

  it("stops when the client disconnects, and waits for a slow reader", async () => {
    const description = "x".repeat(4_000);
    const policies = Array.from({ length: 300 }, (_, index) => ({
      id: `p${index}`,
      description,
      limits: [{ by: ["user"], windows: ["1/s"] }],
    }));
    await admin.control.configuration.import(createRoleActor("admin"), JSON.stringify({ policies }));
    const options = { token: tokenForRole("viewer") };
    const left = client.watch(PolicyAdminDefinition, "listPolicies", { ownerTeam: "" }, options);
    left.on("error", () => {});
    await new Promise((resolve) => left.once("data", resolve));
    left.cancel();
    const slow = client.watch(PolicyAdminDefinition, "listPolicies", { ownerTeam: "" }, options);
    let told = 0;
    for await (const _ of slow) {
      told += 1;
      await new Promise(setImmediate);
    }
    expect(told).toBe(policies.length);
  });

  it("ends if the token is revoked meanwhile", async () => {
    const policies = Array.from({ length: 150 }, (_, index) => ({
      id: `p${index}`,
      limits: [{ by: ["user"], windows: ["1/s"] }],
    }));
    await admin.control.configuration.import(createRoleActor("admin"), JSON.stringify({ policies }));
    let asked = 0;
    const { identify } = admin.service.access;
    const access: Access = {
      identify(token) {
        asked += 1;
        if (asked > 1) throw new SluiceError("unauthenticated", "this token is not known here");
        return identify(token);
      },
    };
    const forgetful = await listenForTest("grpc", wholeGrpcServer({ ...admin.service, access }, {}, admin.control));
    const other = connectForTest(forgetful.address);
    const stream = other.watch(
      PolicyAdminDefinition,
      "listPolicies",
      { ownerTeam: "" },
      { token: tokenForRole("viewer") },
    );
    let told = 0;
    const reading = (async () => {
      for await (const _ of stream) told += 1;
    })();
    await expect(reading).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    expect(told).toBe(100);
    other.close();
    await forgetful.close();
  });

  it("ends with a status for a caller that may not read", async () => {
    await expect(list("", "check")).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
  });
});

describe("Sluice's own limits", () => {
  it("count failures: logins from an address, and forbidden calls of a token", async () => {
    const empty = Policy.fromPartial({});
    const collectCodes = (token: string, calls: number): Promise<number[]> =>
      Promise.all(
        Array.from({ length: calls }, async () => {
          return (await client.fail(PolicyAdminDefinition, "configurePolicy", empty, { token })).code;
        }),
      );
    const strangers = await collectCodes("nobody-has-this", 50);
    expect(new Set(strangers)).toEqual(new Set([status.UNAUTHENTICATED, status.RESOURCE_EXHAUSTED]));
    expect(strangers.filter((code) => code === status.UNAUTHENTICATED).length).toBeLessThan(25);
    const viewers = await collectCodes(tokenForRole("viewer"), 300);
    expect(new Set(viewers)).toEqual(new Set([status.PERMISSION_DENIED, status.RESOURCE_EXHAUSTED]));
    expect(await configure(read, "admin")).toMatchObject({ version: 1 });
  });

  it("apply here too, to each token separately", async () => {
    const empty = Policy.fromPartial({});
    const codes = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const options = { token: tokenForRole("editor") };
        return (await client.fail(PolicyAdminDefinition, "configurePolicy", empty, options)).code;
      }),
    );
    expect(new Set(codes)).toEqual(new Set([status.INVALID_ARGUMENT, status.RESOURCE_EXHAUSTED]));
    expect(codes.filter((code) => code === status.INVALID_ARGUMENT).length).toBeGreaterThanOrEqual(100);
    expect(await configure(read, "admin")).toMatchObject({ version: 1 });
    expect(await list()).toHaveLength(1);
  });
});

describe("on a server without a store", () => {
  it("policies cannot be changed or listed, and the error says why", async () => {
    const bare = await listenForTest(
      "grpc",
      wholeGrpcServer(createTestService(admin.limiter, { access: admin.service.access })),
    );
    const other = connectForTest(bare.address);
    try {
      const options = { token: tokenForRole("admin") };
      const error = await other.fail(PolicyAdminDefinition, "configurePolicy", Policy.fromPartial(read), options);
      expect(error).toMatchObject({ code: status.UNIMPLEMENTED, details: expect.stringContaining("--store") });
      const stream = other.watch(PolicyAdminDefinition, "listPolicies", { ownerTeam: "" }, options);
      await expect(stream.toArray()).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
    } finally {
      other.close();
      await bare.close();
    }
  });
});

describe("a reset", () => {
  const request = { policyId: "api.read.v3", dimensions: { user: "a", tenant: "t", ip: "203.0.113.7" }, domain: "" };

  beforeEach(async () => {
    await configure(read);
    await applyStored(admin);
  });

  it("resets counters, and is in the audit of its subject", async () => {
    const token = tokenForRole("operator");
    const check = (): Promise<{ allowed: boolean }> =>
      client.call(RateLimiterDefinition, "checkAndIncrement", { ...request, cost: 2, requestId: "" }, { token });
    expect([(await check()).allowed, (await check()).allowed]).toEqual([true, false]);
    await client.call(RateLimiterDefinition, "resetKey", request, { token });
    expect((await check()).allowed).toBe(true);
    const { items } = await admin.control.audit.list(createRoleActor("admin"), { target: "user:a" });
    expect(items).toMatchObject([{ actor: "operator", action: "subject.reset", from: "127.0.0.1", outcome: "done" }]);
  });

  it("resets those of the named domain, if it names no policy", async () => {
    const policy = { ...read, policyId: "shop", domain: "shop", dimensions: ["user"] };
    await configure(policy);
    await applyStored(admin);
    const token = tokenForRole("operator");
    const asked = { policyId: "", domain: "shop", dimensions: { user: "a" } };
    const check = (): Promise<{ allowed: boolean }> =>
      client.call(RateLimiterDefinition, "checkAndIncrement", { ...asked, cost: 2, requestId: "" }, { token });
    expect([(await check()).allowed, (await check()).allowed]).toEqual([true, false]);
    await client.call(RateLimiterDefinition, "resetKey", asked, { token });
    expect((await check()).allowed).toBe(true);
  });

  it("by ResetLimit is as well", async () => {
    const reset = { identifier: "203.0.113.9", dimension: 2 as const, endpoint: "/x" };
    await client.call(RateLimiterDefinition, "resetLimit", reset, { token: tokenForRole("operator") });
    const { items } = await admin.control.audit.list(createRoleActor("admin"), { target: "ip:203.0.113.9" });
    expect(items).toMatchObject([{ actor: "operator", action: "subject.reset" }]);
  });

  it("is for operators, and refusals are audited", async () => {
    const error = await client.fail(RateLimiterDefinition, "resetKey", request, { token: tokenForRole("editor") });
    expect(error.code).toBe(status.PERMISSION_DENIED);
    await expect
      .poll(async () => (await admin.control.audit.list(createRoleActor("admin"), { outcome: "refused" })).items, {
        timeout: 30_000,
      })
      .toMatchObject([{ actor: "editor", action: "subject.reset" }]);
  });
});
