import type { DenialRecord } from "@sluice/sql";
import { createLimiter } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DenialRequest } from "../denial-control.ts";
import { denialSubject } from "../denials/denial-subject.ts";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";

const hourMs = 3_600_000;
let control: TestControl;

beforeEach(async () => {
  const limits = [{ by: ["user"], windows: ["5/m"] }];
  const policies = [
    { id: "filed", owner: "web", limits },
    { id: "taken", owner: "other", limits },
  ];
  const { policySet } = createLimiter({ policies: { policies, default: "none" } }).snapshot;
  control = await openTestControl({ filePolicies: policySet });
});

afterEach(() => control.close());

/** Stores a denial that happened this long ago. */
async function store(id: string, agoMs: number, changes: Partial<DenialRecord> = {}): Promise<void> {
  const atMs = control.clock.epochMs() - agoMs;
  const record: DenialRecord = {
    ...{ id, atMs, sinceMs: atMs, node: "n1", policy: "api", version: 3, limit: "tenant", by: ["tenant"] },
    ...{ dimensions: { tenant: "acme" }, requestId: undefined, reason: "over_limit", window: "5/s", cost: 1 },
    ...{ capacity: 5, remaining: 0, retryAfterMs: 200, degraded: undefined, shadow: false, denials: 1, mixed: false },
    ...changes,
  };
  const foundBy = Object.entries(record.dimensions).map(([dimension, value]) => ({
    dimension,
    subject: denialSubject(dimension, value, undefined),
  }));
  await control.store.note((note) => note.addDenials([{ record, foundBy }]));
}

const list = (request: DenialRequest = {}, actor = createActor("viewer")) => control.denials.list(actor, request);
const listIds = async (request: DenialRequest = {}, actor = createActor("viewer")) =>
  (await list(request, actor)).items.map(({ id }) => id);

describe("denials", () => {
  it("of a subject are found an hour later, newest first, with how many they stand for", async () => {
    await store("a", hourMs, { denials: 40 });
    await store("b", 5_000);
    await store("c", 4_000, { dimensions: { tenant: "loud" }, denials: 9_000 });
    await store("d", 3_000, { dimensions: { tenant: "loud" }, denials: 7, mixed: true });
    await store("e", 25 * hourMs);
    expect(await list({ dimension: "tenant", subject: "acme" })).toMatchObject({
      items: [{ id: "b" }, { id: "a" }],
      next: undefined,
      denials: 41,
      mixed: 7,
    });
    expect(await listIds()).toEqual(["d", "c", "b", "a"]);
    const nowMs = control.clock.epochMs();
    expect(await listIds({ fromMs: nowMs - 48 * hourMs, toMs: nowMs - 10_000 })).toEqual(["a", "e"]);
  });

  it("are filtered by policy and limit, and paged", async () => {
    for (let i = 0; i < 5; i++) await store(`d${i}`, 1_000 - i, { policy: i === 3 ? "search" : "api" });
    await store("other", 2_000, { limit: "user" });
    expect(await listIds({ policy: "search" })).toEqual(["d3"]);
    expect(await listIds({ ofLimit: "user" })).toEqual(["other"]);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const { items, next } = await list({ policy: "api", ofLimit: "tenant", limit: 3, after });
      seen.push(...items.map(({ id }) => id));
      if (next === undefined) break;
      after = next;
    }
    expect(seen).toEqual(["d4", "d2", "d1", "d0"]);
  });

  it("are each in one page, whatever is stored between two of them", async () => {
    const first = Array.from({ length: 40 }, (_, i) => `first${i}`);
    // Several in one millisecond.
    for (const [i, id] of first.entries()) await store(id, 1_000 + (i % 11));
    const seen: string[] = [];
    for (let after: string | undefined, page = 0; ; page++) {
      const { items, next } = await list({ limit: 1 + (page % 5), after });
      seen.push(...items.map(({ id }) => id));
      if (next === undefined) break;
      after = next;
      // Newer ones, those of a node that stores late, and some of the same milliseconds.
      for (const agoMs of [500, 1_005, 1_010, 60_000]) await store(`later${page}x${agoMs}`, agoMs);
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(first.filter((id) => !seen.includes(id))).toEqual([]);
  });

  it("are found by any spelling of a subject, and by an API key that the store does not hold", async () => {
    await store("v6", 1_000, { dimensions: { ip: "2001:db8::1" } });
    await store("key", 1_000, { dimensions: { api_key: "k-secret" } });
    expect(await listIds({ dimension: "ip", subject: "2001:0DB8:0::1" })).toEqual(["v6"]);
    expect(await listIds({ dimension: "api_key", subject: "k-secret" })).toEqual(["key"]);
    expect(denialSubject("api_key", "k-secret", undefined)).toMatch(/^sha256:[0-9a-f]{16}$/);
  });

  it("are those of an editor's own team, as is its usage", async () => {
    for (const [id, owner] of [
      ["ours", "web"],
      ["theirs", "other"],
      ["taken", "web"],
    ])
      await control.policies.put(
        admin,
        id!,
        { owner, match: { endpoint: `/${id}` }, limits: [{ by: ["user"], windows: ["5/m"] }] },
        { expected: 0 },
      );
    const policies = ["ours", "theirs", "taken", "filed", ""];
    for (const [i, policy] of policies.entries()) await store(policy === "" ? "none" : policy, 1_000 + i, { policy });
    const sums = policies.map((policy, i) => ({
      ...{ policy, limit: "l", dimension: "", subject: "", startMs: control.clock.epochMs() - hourMs },
      ...{ decided: 10 ** i, allowed: 0, denied: 0, cost: 0, degraded: 0, shadowDenied: 0, denials: [] },
    }));
    await control.store.note((note) => note.addUsage({ node: "n", boot: "b", sequence: 1, sums }));
    const usage = async (actor = createActor("viewer"), policy?: string) =>
      (await control.usage.list(actor, { step: "minute", policy })).items.map(({ decided }) => decided);
    const web = createActor("editor", "web");
    expect(await listIds({}, web)).toEqual(["ours", "filed"]);
    expect(await usage(web)).toEqual([1_001]);
    expect(await listIds({ policy: "theirs" }, web)).toEqual([]);
    expect(await usage(web, "theirs")).toEqual([]);
    expect(await listIds({}, createActor("editor"))).toEqual([]);
    for (const role of ["viewer", "operator", "admin"] as const) {
      expect(await listIds({}, createActor(role))).toEqual(["ours", "theirs", "taken", "filed", "none"]);
      expect(await usage(createActor(role))).toEqual([11_111]);
    }
  });

  it.each<readonly [string, DenialRequest]>([
    ["from_ms", { fromMs: 10, toMs: 5 }],
    ["subject", { subject: "acme" }],
    ["dimension", { dimension: "tenant" }],
    ["after", { after: "nonsense" }],
    ["limit", { limit: 0 }],
  ])("are refused with the field's name if %s makes no sense", async (field, request) => {
    const error = await catchRefusal(list(request));
    expect(error).toMatchObject({ code: "invalid_request", problems: [{ path: [field] }] });
  });

  it("are for roles that may read", async () => {
    expect(await catchRefusal(list({}, createActor("check")))).toMatchObject({ code: "permission_denied" });
  });
});
