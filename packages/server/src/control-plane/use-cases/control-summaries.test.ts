import { afterEach, beforeEach, expect, it } from "vitest";
import { createRoleActor, type StartedAdmin, startAdmin } from "../admin-api/testing/start-admin.ts";

const hourMs = 3_600_000;
let admin: StartedAdmin;
const actor = createRoleActor("admin");

beforeEach(async () => {
  admin = await startAdmin();
  for (const [id, owner] of [
    ["orders", "shop"],
    ["search", "discovery"],
  ] as const) {
    const limits = [{ by: ["tenant"], windows: ["1000/h"] }];
    await admin.control.policies.put(actor, id, {
      id,
      owner,
      match: { endpoint: `/${id}` },
      limits,
      on_failure: "open",
    });
  }
  const startMs = Math.floor(Date.now() / hourMs) * hourMs - 2 * hourMs;
  const counts = { decided: 12, allowed: 10, denied: 2, cost: 250, degraded: 0, shadowDenied: 1, denials: [] };
  const series = { policy: "orders", limit: "tenant", startMs };
  const sums = [
    { ...series, ...counts, dimension: "", subject: "" },
    { ...series, ...counts, dimension: "tenant", subject: "acme" },
  ];
  await admin.store.note((note) => note.addUsage({ node: "n", boot: "b", sequence: 1, sums }));
  await admin.store.note((note) => note.planUsage());
  while (await admin.store.upkeep((note) => note.rollUpUsage()));
});

afterEach(() => admin.close());

it("summarizes policies with their last 24 hours, in sentences, and with headroom", async () => {
  const { items } = await admin.control.summaries.policies(actor);
  expect(items.map(({ id }) => id)).toEqual(["orders", "search"]);
  const [orders, search] = items;
  expect(orders!.usage!.allowed).toHaveLength(24);
  expect(orders!.usage!.allowed[21]).toBe(10);
  expect(orders!.usage!.denied.reduce((sum, one) => sum + one, 0)).toBe(2);
  expect(orders!.prose[1]).toBe("Allows 1000 per hour, for each tenant.");
  expect(orders!.headroom).toMatchObject({ share: 0.25, limit: "tenant", cost: 250, capacity: 1_000, step: "hour" });
  expect(search!.headroom).toBeUndefined();
  expect(search!.usage!.allowed.every((count) => count === 0)).toBe(true);
});

it("shows an editor all policies, and the usage of its team's alone", async () => {
  const editor = createRoleActor("editor");
  const usageFor = async (team: string) => {
    const { items } = await admin.control.summaries.policies({ ...editor, caller: { ...editor.caller, team } });
    return items.map(({ id, usage, headroom }) => [id, usage?.allowed[21], headroom?.cost]);
  };
  expect(await usageFor("shop")).toEqual([
    ["orders", 10, 250],
    ["search", undefined, undefined],
  ]);
  expect(await usageFor("discovery")).toEqual([
    ["orders", undefined, undefined],
    ["search", 0, undefined],
  ]);
  expect(await usageFor("")).toEqual([
    ["orders", undefined, undefined],
    ["search", undefined, undefined],
  ]);
});

it("searches by id and owner, page by page", async () => {
  const find = async (search: string) =>
    (await admin.control.summaries.policies(actor, { search })).items.map(({ id }) => id);
  expect(await find("ORD")).toEqual(["orders"]);
  expect(await find("disco")).toEqual(["search"]);
  expect(await find("nothing")).toEqual([]);
  const page = await admin.control.summaries.policies(actor, { search: "s", limit: 1 });
  expect([page.items.length, page.next]).toEqual([1, "orders"]);
  const rest = await admin.control.summaries.policies(actor, { search: "s", limit: 1, after: page.next });
  expect([rest.items.map(({ id }) => id), rest.next]).toEqual([["search"], undefined]);
});

it("finds subjects by their beginning, and lists those that used most", async () => {
  await admin.control.subjects.setTier(actor, "tenant", "acme", "premium");
  const { items } = await admin.control.summaries.subjects(actor, { prefix: "ac" });
  expect(items).toMatchObject([{ dimension: "tenant", value: "acme", knownBy: ["usage", "configured"] }]);
  const top = await admin.control.summaries.topSubjects(actor, { dimension: "tenant" });
  expect(top).toMatchObject({ step: "hour", by: "decided", items: [{ subject: "acme", decided: 12 }] });
  // An editor of another team sees none of it.
  const editor = createRoleActor("editor");
  const ofOthers = { ...editor, caller: { ...editor.caller, team: "discovery" } };
  expect((await admin.control.summaries.topSubjects(ofOthers, { dimension: "tenant" })).items).toEqual([]);
});
