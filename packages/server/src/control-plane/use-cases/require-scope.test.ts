import { parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  admin,
  catchRefusal,
  createActor,
  document,
  openTestControl,
  type TestControl,
} from "../testing/open-test-control.ts";

let control: TestControl;

beforeEach(async () => {
  control = await openTestControl();
});

afterEach(() => control.close());

const shop = createActor("editor", "shop");
const put = (more: Readonly<Record<string, unknown>>, id = "p"): Promise<unknown> =>
  control.policies.put(shop, id, document("1/s", more));

async function refusedScope(attempt: Promise<unknown>): ReturnType<typeof catchRefusal> {
  const before = await control.dump();
  const refusal = await catchRefusal(attempt);
  expect(refusal.code).toBe("permission_denied");
  expect(await control.dump()).toBe(before);
  return refusal;
}

describe("the match of an editor's policy", () => {
  it.each([
    ["no match", {}],
    ["an empty match", { match: {} }],
    ["the domain of every request", { domain: "default" }],
    ["every path", { match: { endpoint: "/**" } }],
    ["every path of one segment", { match: { endpoint: "/*" } }],
    ["a name for the first segment", { match: { endpoint: "/{service}/**" } }],
    ["wildcards alone", { match: { endpoint: "/*/{id}/**" } }],
    ["the root", { match: { endpoint: "/" } }],
    ["methods alone", { match: { method: ["GET", "POST"] } }],
    ["any value of a dimension", { match: { user: "*" } }],
    ["any value among others", { match: { user: ["u1", "*"] } }],
    ["every address", { match: { ip: "0.0.0.0/0" } }],
    ["every address, in two halves", { match: { ip: ["0.0.0.0/1", "128.0.0.0/1"] } }],
    ["every address of both kinds", { match: { ip: ["0.0.0.0/0", "::/0"] } }],
    ["one address", { match: { ip: "192.0.2.1" } }],
    ["tiers", { match: { tier: ["free", "premium"] } }],
    ["a deny list for everything", { match: {}, limits: undefined, deny: { ip: "0.0.0.0/0" } }],
    ["an exemption for everything", { limits: undefined, unlimited: true }],
    ["a share of every subject", { rollout: { percent: 100, by: "user" } }],
    ["only later", { valid_from: "2030-01-01T00:00:00Z" }],
    ["only to be looked at", { mode: "shadow" }],
  ])("is refused with %s, by field, and nothing is stored", async (_, more) => {
    const { problems, message } = await refusedScope(put(more));
    expect(problems).toEqual([
      { path: ["match"], message: expect.stringContaining("name a path with a fixed segment") },
    ]);
    expect(message).toContain("match: is for every request");
    await control.policies.put(admin, "p", document("1/s", more));
  });

  it.each(["/%2A%2A", "/%2a", "/%7Bx%7D/**", "/%2e/**", "/a/%2E%2e/**", "/a/.%2e/**"])(
    "is not a valid pattern if %s hides a wildcard or leads back up",
    async (endpoint) => {
      expect(await catchRefusal(put({ match: { endpoint } }))).toMatchObject({ code: "invalid_policies" });
    },
  );

  it.each([
    ["a path", { match: { endpoint: "/v1/orders/**" } }],
    ["a fixed segment behind others", { match: { endpoint: "/{tenant}/orders/*" } }],
    ["a value", { match: { user: ["u1", "u2"] } }],
    ["a value as well as an address", { match: { tenant: "acme", ip: "10.0.0.0/8" } }],
    ["a separate domain", { domain: "shop" }],
    ["a policy used only by id", { domain: "by-id" }],
  ])("may be %s", async (_, more) => {
    await put(more);
  });

  it("cannot be a whole domain in which others have policies, in the store or in files", async () => {
    await control.policies.put(admin, "edge", document("9/s", { domain: "edge", owner: "web" }));
    await control.policies.put(admin, "common", document("9/s", { domain: "common" }));
    await control.applyStored();
    expect((await refusedScope(put({ domain: "edge" }))).message).toContain("web has the policy edge");
    expect((await refusedScope(put({ match: { domain: "common" } }))).message).toContain("an admin has");
    await put({ domain: "edge", match: { endpoint: "/orders" } });
    const filePolicies = parsePolicies({ domain: "filed", policies: [{ id: "f", ...document("1/s") }] });
    const beside = await openTestControl({ filePolicies });
    const attempt = beside.policies.put(shop, "p", document("1/s", { domain: "filed" }));
    expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
    await beside.close();
  });
});

describe("a policy that reaches beyond its team, already stored", () => {
  const everything = document("9/s", { owner: "shop" });
  const orders = { owner: "shop", match: { endpoint: "/orders" } };

  it("stays in force, and only an admin changes or deletes it", async () => {
    await control.policies.put(admin, "p", everything);
    const attempts = [
      () => control.policies.put(shop, "p", document("10/s"), { expected: 1 }),
      () => control.policies.put(shop, "p", document("10/s", orders), { expected: 1 }),
      () => control.policies.put(shop, "p", document("10/s", orders), { expected: 1, rollout: {} }),
      () => control.policies.delete(shop, "p", { expected: 1 }),
    ];
    for (const attempt of attempts) expect((await refusedScope(attempt())).message).toContain("match: of policy p");
    const { policySet } = await control.applyStored();
    expect(policySet.policies.map(({ id, version }) => [id, version])).toEqual([["p", 1]]);
    await control.policies.put(admin, "p", document("10/s", orders), { expected: 1 });
    await control.policies.put(shop, "p", document("11/s", orders), { expected: 2 });
  });

  it("is not restored by an editor's revert, at once or in steps", async () => {
    await control.policies.put(admin, "p", everything);
    await control.policies.put(admin, "p", document("9/s", orders), { expected: 1 });
    await refusedScope(control.policies.revert(shop, "p", 1, { expected: 2 }));
    await refusedScope(control.policies.revert(shop, "p", 1, { expected: 2, rollout: {} }));
    await control.policies.delete(shop, "p", { expected: 2 });
    await refusedScope(control.policies.revert(shop, "p", 1, { expected: 0 }));
    await control.policies.revert(shop, "p", 2, { expected: 0 });
  });

  it("may be restored by its team while a new version of it is being rolled out", async () => {
    await control.policies.put(admin, "p", everything);
    const { value } = await control.policies.put(admin, "p", document("8/s", { owner: "shop" }), {
      expected: 1,
      rollout: {},
    });
    await control.rollouts.rollBack(shop, value.rollout!.id);
  });
});
