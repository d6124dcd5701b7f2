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

const team = (name: string) => createActor("editor", name);
const scoped: typeof document = (windows, more) => document(windows, { match: { endpoint: "/v1/orders/**" }, ...more });

describe("putting a policy", () => {
  it("creates it at version 1, and nodes apply it in the next generation", async () => {
    const put = await control.policies.put(admin, "orders", document("10/s"), { why: "a start" });
    expect(put).toMatchObject({
      generation: 1,
      dryRun: false,
      warnings: [],
      value: { id: "orders", version: 1, author: "admin", why: "a start", rollout: undefined, overriddenBy: undefined },
    });
    expect(put.value.document).toEqual({ id: "orders", ...document("10/s") });
    expect(control.announced).toEqual([1]);
    const { policySet, generation, problems } = await control.applyStored();
    expect(generation).toBe(1);
    expect(problems).toEqual([]);
    expect(policySet.policies.map(({ id, version, limits }) => [id, version, limits[0]?.windows[0]?.limit])).toEqual([
      ["orders", 1, 10],
    ]);
  });

  it("replaces the version that the caller saw, and keeps all earlier ones", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(admin, "orders", document("20/s"), { expected: 1, why: "more" });
    const versions = await control.policies.versions(admin, "orders");
    expect(versions.items.map(({ version, why, current }) => [version, why, current])).toEqual([
      [2, "more", true],
      [1, "", false],
    ]);
    expect((await control.policies.version(admin, "orders", 1)).document).toEqual({
      id: "orders",
      ...document("10/s"),
    });
    expect((await control.policies.get(admin, "orders")).version).toBe(2);
  });

  it.each([
    [undefined, 1],
    [0, 1],
    [2, 1],
  ])("is refused if the caller expects version %s, and names the current one", async (expected, current) => {
    await control.policies.put(admin, "orders", document("10/s"));
    const before = await control.dump();
    const refusal = await catchRefusal(control.policies.put(admin, "orders", document("20/s"), { expected }));
    expect(refusal).toMatchObject({ code: "version_conflict", currentVersion: current });
    expect(await control.dump()).toBe(before);
  });

  it("is refused if the caller expects a version of a missing policy", async () => {
    const refusal = await catchRefusal(control.policies.put(admin, "orders", document("20/s"), { expected: 3 }));
    expect(refusal).toMatchObject({ code: "version_conflict", currentVersion: 0 });
  });

  it("lets exactly one of two editors win that saw the same version", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const both = await Promise.allSettled(
      ["20/s", "30/s"].map((windows) => control.policies.put(admin, "orders", document(windows), { expected: 1 })),
    );
    expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const lost = both.find((one) => one.status === "rejected");
    expect(lost?.reason).toMatchObject({ code: "version_conflict", currentVersion: 2 });
    expect((await control.policies.versions(admin, "orders")).items).toHaveLength(2);
  });

  it("changes nothing if the document is the same, in any order", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const before = await control.dump();
    const same = { limits: [{ windows: ["10/s"], by: ["user"] }], on_failure: "open", id: "orders", version: 7 };
    const put = await control.policies.put(admin, "orders", same, { expected: 1 });
    expect(put).toMatchObject({ generation: undefined, value: { version: 1 } });
    expect(await control.dump()).toBe(before);
    expect(control.announced).toEqual([1]);
  });

  it("is refused with every problem, by its place in the document", async () => {
    const bad = { id: "orders", limts: [], limits: [{ by: ["user"], windows: ["ten"] }] };
    const refusal = await catchRefusal(control.policies.put(admin, "orders", bad));
    expect(refusal.code).toBe("invalid_policies");
    expect((refusal.problems as { path: unknown }[]).map(({ path }) => path)).toEqual(
      expect.arrayContaining([["limts"], ["limits", 0, "windows", 0]]),
    );
  });

  it.each([
    ["a missing policy", "orders", { replaces: ["nobody"] }, ["replaces", 0]],
    ["itself in a cycle", "second", { replaces: ["first"] }, ["replaces", 0]],
  ])("is refused if it replaces %s", async (_, id, more, path) => {
    await control.policies.put(admin, "second", document("5/s"));
    await control.policies.put(admin, "first", document("5/s", { replaces: ["second"] }));
    const before = await control.dump();
    const expected = id === "second" ? 1 : 0;
    const refusal = await catchRefusal(control.policies.put(admin, id, document("9/s", more), { expected }));
    expect(refusal.code).toBe("invalid_policies");
    expect(refusal.problems).toEqual([expect.objectContaining({ path: expect.arrayContaining(path) })]);
    expect(await control.dump()).toBe(before);
  });

  it("is possible while another policy cannot be read", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.store.change(async (change) => {
      const known = (await change.policy("orders"))!;
      await change.putPolicy({ ...known, document: '{"id":"orders","from_the_future":true}' });
      await change.nextGeneration();
    });
    await control.policies.put(admin, "other", document("10/s"));
    const { policySet, problems } = await control.applyStored();
    expect(policySet.policies.map(({ id }) => id)).toEqual(["other"]);
    expect(problems.map(({ path }) => path.slice(0, 2))).toContainEqual(["policies", "orders"]);
    // But it does not get worse.
    const refusal = await catchRefusal(control.policies.put(admin, "third", document("1/s", { replaces: ["nobody"] })));
    expect(refusal.problems).toEqual([expect.objectContaining({ path: ["replaces", 0] })]);
  });

  it("makes the policy of id default the one for requests that match no other", async () => {
    await control.policies.put(admin, "default", { limits: [{ by: ["ip"], windows: ["3/s"] }] });
    expect((await control.applyStored()).policySet.fallback).toMatchObject({
      id: "default",
      version: 1,
      limits: [{ by: ["ip"] }],
    });
    await control.policies.put(admin, "default", { unlimited: true }, { expected: 1 });
    expect((await control.applyStored()).policySet.fallback).toBeUndefined();
    await control.policies.delete(admin, "default", { expected: 2 });
    const { policySet, hasDefault } = await control.applyStored();
    expect(hasDefault).toBe(false);
    expect(policySet.fallback?.limits[0]?.by).toEqual(["subject"]);
  });

  it("holds back a version until its valid_from, with the old one in force meanwhile", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const validFrom = new Date(control.clock.epochMs() + 3_600_000).toISOString();
    const put = await control.policies.put(admin, "orders", document("20/s", { valid_from: validFrom }), {
      expected: 1,
    });
    expect(put.value.rollout).toMatchObject({
      state: "waiting",
      fromVersion: 1,
      toVersion: 2,
      steps: [{ percent: 100 }],
    });
    expect(put.value.rollout?.startsMs).toBe(Date.parse(validFrom));
    expect((await control.policies.get(admin, "orders")).version).toBe(1);
    expect((await control.applyStored()).policySet.policies.map(({ version, trial }) => [version, trial])).toEqual([
      [1, undefined],
    ]);
    const id = put.value.rollout?.id ?? "";
    expect(await catchRefusal(control.rollouts.finish(admin, id))).toMatchObject({ code: "invalid_request" });
    control.clock.advance(3_600_000);
    await control.rollouts.finish(admin, id);
    expect((await control.applyStored()).policySet.policies.map(({ version }) => version)).toEqual([2]);
  });

  it("refuses a valid_from more than a year ahead by that name, if an older version applies until then", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const validFrom = new Date(control.clock.epochMs() + 400 * 86_400_000).toISOString();
    const later = document("20/s", { valid_from: validFrom });
    for (const options of [{ expected: 1 }, { expected: 1, rollout: {} }])
      expect(await catchRefusal(control.policies.put(admin, "orders", later, options))).toMatchObject({
        code: "invalid_request",
        problems: [{ path: ["valid_from"], message: expect.stringContaining(`but is ${validFrom}`) }],
      });
  });

  it("needs no rollout for a valid_from ahead if nothing is in force", async () => {
    const validFrom = new Date(control.clock.epochMs() + 3_600_000).toISOString();
    const put = await control.policies.put(admin, "orders", document("20/s", { valid_from: validFrom }));
    expect(put.value.rollout).toBeUndefined();
    const again = await control.policies.put(admin, "orders", document("30/s", { valid_from: validFrom }), {
      expected: 1,
    });
    expect(again.value).toMatchObject({ rollout: undefined, version: 2 });
  });

  it("is refused with a reason that is too long", async () => {
    const put = (length: number) =>
      control.policies.put(admin, "orders", document("10/s"), { why: "y".repeat(length) });
    expect(await catchRefusal(put(1_001))).toMatchObject({ code: "invalid_request", problems: [{ path: ["why"] }] });
    await put(1_000);
  });

  it("takes a rule once", async () => {
    await control.policies.put(admin, "one", document("10/s"), { ruleKey: "user|*|/v1" });
    const refusal = await catchRefusal(control.policies.put(admin, "two", document("10/s"), { ruleKey: "user|*|/v1" }));
    expect(refusal).toMatchObject({ code: "already_exists", message: expect.stringContaining("one") });
    // Another limit is still the same rule; a policy that applies to other subjects is another one.
    await control.policies.put(admin, "one", document("20/s"), { expected: 1 });
    expect(
      await catchRefusal(control.policies.put(admin, "two", document("10/s"), { ruleKey: "user|*|/v1" })),
    ).toMatchObject({ code: "already_exists" });
    await control.policies.put(admin, "one", document("20/s", { match: { endpoint: "/v2" } }), { expected: 2 });
    await control.policies.put(admin, "two", document("10/s"), { ruleKey: "user|*|/v1" });
    await control.policies.delete(admin, "two", { expected: 1 });
    await control.policies.put(admin, "three", document("10/s"), { ruleKey: "user|*|/v1" });
  });
});

describe("deleting and reverting", () => {
  it("deletes what the caller saw, as a new version", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    expect(await catchRefusal(control.policies.delete(admin, "orders"))).toMatchObject({ code: "version_conflict" });
    await control.policies.delete(admin, "orders", { expected: 1, why: "not needed" });
    expect(await catchRefusal(control.policies.get(admin, "orders"))).toMatchObject({ code: "resource_not_found" });
    const { items } = await control.policies.versions(admin, "orders");
    expect(items.map(({ version, document: written, why }) => [version, written === undefined, why])).toEqual([
      [2, true, "not needed"],
      [1, false, ""],
    ]);
    expect((await control.applyStored()).policySet.policies).toEqual([]);
    expect(await catchRefusal(control.policies.delete(admin, "orders", { expected: 2 }))).toMatchObject({
      code: "resource_not_found",
    });
  });

  it("is refused while another policy or a subject refers to it", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.subjects.setLimit(admin, "user", "u1", { policy: "orders", windows: ["99/s"] });
    const before = await control.dump();
    const refusal = await catchRefusal(control.policies.delete(admin, "orders", { expected: 1 }));
    expect(refusal.problems).toEqual([
      expect.objectContaining({ path: ["subjects", "user", "u1", "orders", "policy"] }),
    ]);
    expect(await control.dump()).toBe(before);
    await control.subjects.delete(admin, "user", "u1", { expected: "any" });
    await control.policies.delete(admin, "orders", { expected: 1 });
  });

  it("restores the content of a version as a new version, even after a deletion", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(admin, "orders", document("20/s"), { expected: 1 });
    const reverted = await control.policies.revert(admin, "orders", 1, { expected: 2 });
    expect(reverted.value).toMatchObject({ version: 3, document: document("10/s") });
    expect((await control.policies.version(admin, "orders", 3)).revertOf).toBe(1);
    await control.policies.delete(admin, "orders", { expected: 3 });
    expect((await control.policies.revert(admin, "orders", 2)).value).toMatchObject({
      version: 5,
      document: document("20/s"),
    });
    expect(await catchRefusal(control.policies.revert(admin, "orders", 4, { expected: 5 }))).toMatchObject({
      code: "invalid_request",
    });
    expect(await catchRefusal(control.policies.revert(admin, "orders", 9, { expected: 5 }))).toMatchObject({
      code: "resource_not_found",
    });
  });

  it("continues version numbers, so that a new policy is not mistaken for the one that was seen", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.delete(admin, "orders", { expected: 1 });
    expect((await control.policies.put(admin, "orders", document("30/s"))).value.version).toBe(3);
    expect(await catchRefusal(control.policies.put(admin, "orders", document("1/s"), { expected: 1 }))).toMatchObject({
      currentVersion: 3,
    });
  });
});

describe("reading policies", () => {
  it("lists them in pages, and by owner", async () => {
    for (const id of ["a", "b", "c"])
      await control.policies.put(admin, id, document("10/s", { owner: id === "b" ? "web" : "api" }));
    const first = await control.policies.list(admin, { limit: 2 });
    expect([first.items.map(({ id }) => id), first.next]).toEqual([["a", "b"], "b"]);
    const second = await control.policies.list(admin, { limit: 2, after: first.next });
    expect([second.items.map(({ id }) => id), second.next]).toEqual([["c"], undefined]);
    expect((await control.policies.list(admin, { owner: "web" })).items.map(({ id }) => id)).toEqual(["b"]);
    for (const limit of [0, 1_001, 1.5, Number.NaN])
      expect(await catchRefusal(control.policies.list(admin, { limit }))).toMatchObject({ code: "invalid_request" });
  });

  it("shows what changed, by place and line by line", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(
      admin,
      "orders",
      { on_failure: "closed", limits: [{ by: ["user"], windows: ["10/s", "100/m"] }], owner: "api" },
      { expected: 1 },
    );
    const diff = await control.policies.diff(admin, "orders");
    expect([diff.from, diff.to]).toEqual([1, 2]);
    expect(diff.changes).toEqual([
      { path: "on_failure", change: "changed", before: "open", after: "closed" },
      { path: "limits[0].windows[1]", change: "added", before: undefined, after: "100/m" },
      { path: "owner", change: "added", before: undefined, after: "api" },
    ]);
    expect(diff.text).toBe(
      [
        " id: orders",
        "-on_failure: open",
        "+on_failure: closed",
        " limits:",
        "   - by:",
        "       - user",
        "     windows:",
        "       - 10/s",
        "+      - 100/m",
        "+owner: api",
        "",
      ].join("\n"),
    );
    const first = await control.policies.diff(admin, "orders", 0, 1);
    expect(first.text.split("\n").every((line) => line === "" || line.startsWith("+"))).toBe(true);
    expect((await control.policies.diff(admin, "orders", 2, 1)).changes).toHaveLength(3);
    expect(await catchRefusal(control.policies.diff(admin, "orders", 1, 7))).toMatchObject({
      code: "resource_not_found",
    });
  });

  it("validates a document together with the existing policies, and stores nothing", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const before = await control.dump();
    const viewer = createActor("viewer");
    expect(
      await control.policies.validate(viewer, { id: "new", ...document("1/s", { replaces: ["orders"] }) }),
    ).toEqual({
      problems: [],
      warnings: [],
    });
    const { problems } = await control.policies.validate(viewer, {
      id: "new",
      ...document("1/s", { replaces: ["order"] }),
    });
    expect(problems).toEqual([{ path: ["replaces", 0], message: expect.stringContaining("did you mean orders?") }]);
    const unchosen = { id: "new", limits: [{ by: ["user"], windows: ["1/s"] }] };
    expect((await control.policies.validate(viewer, unchosen)).warnings).toEqual([
      expect.objectContaining({ path: ["on_failure"] }),
    ]);
    expect((await control.policies.validate(viewer, {})).problems.length).toBeGreaterThan(0);
    expect(await control.dump()).toBe(before);
  });

  it("shows if a policy file has the same one, and wins", async () => {
    const { parsePolicies } = await import("sluice");
    const filePolicies = parsePolicies({ policies: [{ id: "orders", ...document("1/s") }] });
    const beside = await openTestControl({ filePolicies });
    const warned = ({ warnings }: { warnings: readonly { message: string }[] }): boolean =>
      warnings.some(({ message }) => /^policy orders is in a policy file .* is not in force$/.test(message));
    expect(warned(await beside.policies.put(admin, "orders", document("10/s")))).toBe(true);
    expect(warned(await beside.policies.put(admin, "other", document("10/s")))).toBe(false);
    expect(warned(await beside.policies.revert(admin, "orders", 1, { expected: 1 }))).toBe(true);
    const text = JSON.stringify({ policies: [{ id: "orders", ...document("20/s") }] });
    expect(warned(await beside.configuration.import(admin, text, { expected: "any" }))).toBe(true);
    expect(warned(await beside.policies.delete(admin, "orders", { expected: 2, dryRun: true }))).toBe(true);
    const winning = await openTestControl({ filePolicies, precedence: "store" });
    expect(warned(await winning.policies.put(admin, "orders", document("10/s")))).toBe(false);
    await winning.close();
    const told = (await beside.policies.list(admin)).items.map(({ id, overriddenBy }) => [id, overriddenBy]);
    expect(told).toEqual([
      ["orders", "file"],
      ["other", undefined],
    ]);
    await beside.close();
  });

  it("lets stored policies and subjects refer to those of files", async () => {
    const { parsePolicies } = await import("sluice");
    const filePolicies = parsePolicies({ policies: [{ id: "filed", ...document("1/s") }] });
    const beside = await openTestControl({ filePolicies });
    await beside.policies.put(admin, "orders", document("10/s", { replaces: ["filed"] }));
    await beside.subjects.setLimit(admin, "user", "u1", { policy: "filed", windows: ["5/s"] });
    expect((await beside.applyStored()).problems).toEqual([]);
    await beside.close();
  });
});

describe("the owner of a policy", () => {
  const cases = [
    ["its own team's", "api", "api", "api", true],
    ["its own team's, without naming the owner", "api", "api", undefined, true],
    ["its own team's, to give it away", "api", "api", "web", false],
    ["another team's", "web", "api", "web", false],
    ["another team's, to take it over", "web", "api", "api", false],
    ["nobody's", undefined, "api", "api", false],
    ["a new one for its own team", "new", "api", "api", true],
    ["a new one, without naming the owner", "new", "api", undefined, true],
    ["a new one for another team", "new", "api", "web", false],
  ] as const;

  it.each(cases)("permits or refuses an editor's change: %s", async (_, before, editor, after, may) => {
    if (before !== "new") await control.policies.put(admin, "orders", scoped("10/s", before && { owner: before }));
    const dump = await control.dump();
    const expected = before === "new" ? 0 : 1;
    const put = control.policies.put(team(editor), "orders", scoped("20/s", after && { owner: after }), { expected });
    if (may) {
      expect((await put).value.owner).toBe("api");
      expect((await put).value.document.owner).toBe("api");
    } else {
      expect(await catchRefusal(put)).toMatchObject({ code: "permission_denied" });
      expect(await control.dump()).toBe(dump);
      const { items } = await listAudit({ outcome: "refused" });
      expect(items).toEqual([
        expect.objectContaining({
          actor: "editor-api",
          role: "editor",
          from: "192.0.2.7",
          action: "policy.put",
          target: "orders",
        }),
      ]);
    }
  });

  it.each(["delete", "revert", "roll out"] as const)("lets an editor %s only what its team owns", async (what) => {
    await control.policies.put(admin, "orders", scoped("10/s", { owner: "web" }));
    await control.policies.put(admin, "orders", scoped("20/s", { owner: "web" }), { expected: 1 });
    const act = async (actor: ReturnType<typeof team>): Promise<unknown> => {
      if (what === "delete") return control.policies.delete(actor, "orders", { expected: 2, dryRun: true });
      if (what === "revert") return control.policies.revert(actor, "orders", 1, { expected: 2, dryRun: true });
      const rollout = (
        await control.policies.put(admin, "orders", scoped("30/s", { owner: "web" }), { expected: 2, rollout: {} })
      ).value.rollout;
      return control.rollouts.advance(actor, rollout?.id ?? "");
    };
    expect(await catchRefusal(act(team("api")))).toMatchObject({ code: "permission_denied" });
    if (what === "roll out") return;
    await act(team("web"));
    await act(admin);
  });

  it("keeps an editor from disabling another team's policy with a new one", async () => {
    await control.policies.put(admin, "orders", scoped("10/s", { owner: "web" }));
    await control.policies.put(admin, "nobodys", scoped("10/s"));
    await control.policies.put(admin, "own", scoped("10/s", { owner: "api" }));
    const mine = (replaces: unknown) => scoped("1000000/s", { replaces });
    for (const replaces of [["orders"], ["own", "orders"], ["nobodys"]])
      expect(await catchRefusal(control.policies.put(team("api"), "mine", mine(replaces)))).toMatchObject({
        code: "permission_denied",
      });
    await control.policies.put(team("api"), "mine", mine(["own"]));
    const change = control.policies.put(team("api"), "mine", mine(["own", "orders"]), { expected: 1 });
    expect((await catchRefusal(change)).message).toContain("policy orders is owned by web");
    // What an admin allowed stays allowed.
    await control.policies.put(admin, "mine", scoped("5/s", { owner: "api", replaces: ["orders"] }), { expected: 1 });
    await control.policies.put(team("api"), "mine", scoped("6/s", { replaces: ["orders"] }), { expected: 2 });
    await control.policies.put(team("api"), "mine", scoped("6/s"), { expected: 3 });
    const back = control.policies.revert(team("api"), "mine", 3, { expected: 4 });
    expect(await catchRefusal(back)).toMatchObject({ code: "permission_denied" });
  });

  it("keeps an editor without a team from changing any, or creating one without an owner", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const editor = createActor("editor");
    for (const attempt of [
      control.policies.put(editor, "new", document("10/s")),
      control.policies.put(editor, "new", document("10/s", { owner: "" })),
      control.policies.put(editor, "orders", document("20/s"), { expected: 1 }),
      control.policies.delete(editor, "orders", { expected: 1 }),
    ])
      expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
  });

  it("keeps an editor from creating, changing or deleting the default, whatever its owner", async () => {
    const made = control.policies.put(team("api"), "default", document("1/s"));
    expect(await catchRefusal(made)).toMatchObject({ code: "permission_denied" });
    await control.policies.put(admin, "default", document("1/s", { owner: "api" }));
    for (const attempt of [
      control.policies.put(team("api"), "default", document("2/s"), { expected: 1 }),
      control.policies.delete(team("api"), "default", { expected: 1 }),
    ])
      expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
  });

  it("also applies to a policy file, whose ids other teams cannot use", async () => {
    const filePolicies = parsePolicies({ policies: [{ id: "filed", ...scoped("10/s", { owner: "web" }) }] });
    const beside = await openTestControl({ filePolicies, precedence: "store" });
    expect(await catchRefusal(beside.policies.put(team("api"), "filed", scoped("99/s")))).toMatchObject({
      code: "permission_denied",
    });
    const replacing = beside.policies.put(team("api"), "mine", scoped("99/s", { replaces: ["filed"] }));
    expect(await catchRefusal(replacing)).toMatchObject({ code: "permission_denied" });
    await beside.policies.put(team("web"), "filed", scoped("9/s"));
    await beside.close();
  });

  it.each(["check", "viewer", "operator"] as const)("keeps a %s from changing any", async (role) => {
    for (const attempt of [
      control.policies.put(createActor(role), "orders", document("10/s")),
      control.policies.delete(createActor(role), "orders", { expected: 1 }),
      control.policies.revert(createActor(role), "orders", 1),
    ])
      expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
    const { items } = await listAudit({ outcome: "refused", actor: role });
    expect(items.map(({ action }) => action).sort()).toEqual(["policy.delete", "policy.put", "policy.revert"]);
  });
});

async function listAudit(query: Parameters<TestControl["audit"]["list"]>[1]) {
  await control.settled();
  return control.audit.list(admin, query);
}

describe("a dry run", () => {
  it("answers and refuses like the real change, and does nothing", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const before = await control.dump();
    const put = await control.policies.put(admin, "orders", document("20/s"), { expected: 1, dryRun: true });
    expect(put).toMatchObject({ dryRun: true, generation: undefined, value: { version: 2 } });
    const out = await control.policies.put(admin, "orders", document("20/s"), {
      expected: 1,
      dryRun: true,
      rollout: {},
    });
    expect(out.value.rollout).toMatchObject({ state: "observing" });
    await control.policies.put(admin, "new", document("20/s"), { dryRun: true });
    await control.policies.delete(admin, "orders", { expected: 1, dryRun: true });
    await control.policies.revert(admin, "orders", 1, { expected: 1, dryRun: true });
    expect(await catchRefusal(control.policies.put(admin, "orders", document("20/s"), { dryRun: true }))).toMatchObject(
      {
        code: "version_conflict",
      },
    );
    expect(await control.dump()).toBe(before);
    expect(control.announced).toEqual([1]);
  });
});

describe("the audit of policies", () => {
  it("names actor, address, reason, and the values before and after", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(admin, "orders", document("20/s"), { expected: 1, why: "more" });
    await control.policies.delete(admin, "orders", { expected: 2 });
    const { items } = await listAudit({ kind: "policy", target: "orders" });
    expect(
      items.map(({ action, actor, role, from, why, generation, outcome }) => [
        action,
        actor,
        role,
        from,
        why,
        generation,
        outcome,
      ]),
    ).toEqual([
      ["policy.delete", "admin", "admin", "192.0.2.7", "", 3, "done"],
      ["policy.put", "admin", "admin", "192.0.2.7", "more", 2, "done"],
      ["policy.put", "admin", "admin", "192.0.2.7", "", 1, "done"],
    ]);
    const [deleted, changed, created] = items.map(({ before, after }) =>
      [before, after].map((one) => one && JSON.parse(one)),
    );
    expect(created).toEqual([undefined, { id: "orders", ...document("10/s") }]);
    expect(changed).toEqual([
      { id: "orders", ...document("10/s") },
      { id: "orders", ...document("20/s") },
    ]);
    expect(deleted).toEqual([{ id: "orders", ...document("20/s") }, undefined]);
  });
});
