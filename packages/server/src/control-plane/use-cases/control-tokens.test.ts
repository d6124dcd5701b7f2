import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";
import { ensureFirstToken } from "./control-tokens.ts";

let control: TestControl;
const dayMs = 86_400_000;

beforeEach(async () => {
  control = await openTestControl();
});

afterEach(() => control.close());

const nowMs = (): number => control.clock.epochMs();

describe("tokens", () => {
  it("are shown once, and stored by their digest", async () => {
    const made = await control.tokens.make(admin, { name: "ci", role: "editor", team: "api" });
    expect(made.value.token).toMatch(/^sluice_[\w-]{43}$/);
    expect(made.value).toMatchObject({
      name: "ci",
      role: "editor",
      team: "api",
      createdBy: "admin",
      expiresMs: nowMs() + 90 * dayMs,
    });
    const [kept] = (await control.applyStored()).tokens;
    expect(kept?.sha256).toBe(createHash("sha256").update(made.value.token).digest("hex"));
    const listed = await control.tokens.list(admin);
    expect(listed).toEqual([expect.objectContaining({ id: made.value.id, name: "ci" })]);
    await control.tokens.revoke(admin, made.value.id);
    await control.settled();
    const everywhere = JSON.stringify([listed, (await control.audit.list(admin)).items, control.logged]);
    expect(everywhere).not.toContain(made.value.token);
    expect(everywhere).not.toContain(kept?.sha256);
  });

  it.each([
    ["an invalid name", { name: "a b", role: "viewer" }, "name"],
    ["an invalid role", { name: "a", role: "king" }, "role"],
    ["an editor without a team", { name: "a", role: "editor" }, "team"],
    ["a team for another role", { name: "a", role: "admin", team: "api" }, "team"],
    ["an invalid team", { name: "a", role: "editor", team: "a b" }, "team"],
    ["an end that has passed", { name: "a", role: "viewer", expiresMs: 1 }, "expires_ms"],
    ["an end in three years", { name: "a", role: "viewer", expiresMs: Date.parse("2029-06-01") }, "expires_ms"],
  ])("are refused with %s", async (_, request, field) => {
    const refusal = await catchRefusal(
      control.tokens.make(admin, request as Parameters<typeof control.tokens.make>[1]),
    );
    expect(refusal).toMatchObject({ code: "invalid_request", problems: [{ path: [field] }] });
    expect(await control.tokens.list(admin)).toEqual([]);
  });

  it.each(["sluice", "anonymous"])(
    "cannot have the name %s, which the audit reserves for actors without a token",
    async (name) => {
      expect(await catchRefusal(control.tokens.make(admin, { name, role: "admin" }))).toMatchObject({
        code: "invalid_request",
        problems: [{ path: ["name"] }],
      });
    },
  );

  it("have unique names among those in use", async () => {
    const { value } = await control.tokens.make(admin, { name: "ci", role: "viewer" });
    expect(await catchRefusal(control.tokens.make(admin, { name: "ci", role: "check" }))).toMatchObject({
      code: "already_exists",
    });
    await control.tokens.revoke(admin, value.id);
    await control.tokens.make(admin, { name: "ci", role: "check" });
  });

  it("are revoked once, as a new generation", async () => {
    const { value } = await control.tokens.make(admin, { name: "ci", role: "viewer" });
    const revoked = await control.tokens.revoke(admin, value.id);
    expect(revoked).toMatchObject({ generation: 2, value: { revokedMs: nowMs() } });
    expect((await control.tokens.revoke(admin, value.id)).generation).toBeUndefined();
    expect(await catchRefusal(control.tokens.revoke(admin, "nothing"))).toMatchObject({ code: "resource_not_found" });
  });

  it("always include a usable admin token", async () => {
    const soon = nowMs() + dayMs;
    const one = (await control.tokens.make(admin, { name: "one", role: "admin", expiresMs: soon })).value;
    const two = (await control.tokens.make(admin, { name: "two", role: "admin" })).value;
    control.clock.advance(dayMs);
    // The first has expired by now, and does not count.
    expect(await catchRefusal(control.tokens.revoke(admin, two.id))).toMatchObject({ code: "permission_denied" });
    await control.tokens.revoke(admin, one.id);
    await control.settled();
    const { items } = await control.audit.list(admin, { outcome: "refused" });
    expect(items).toEqual([expect.objectContaining({ action: "token.revoke", target: two.id })]);
    await control.tokens.make(admin, { name: "three", role: "admin" });
    await control.tokens.revoke(admin, two.id);
  });

  it("are for admins alone", async () => {
    for (const actor of [
      createActor("viewer"),
      createActor("operator"),
      createActor("editor", "api"),
      createActor("check"),
    ]) {
      for (const attempt of [
        control.tokens.list(actor),
        control.tokens.make(actor, { name: "mine", role: "admin" }),
        control.tokens.revoke(actor, "any"),
      ])
        expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
    }
    await control.settled();
    expect((await control.audit.list(admin, { outcome: "refused" })).items).toHaveLength(12);
  });

  it("are not created in a dry run", async () => {
    const before = await control.dump();
    const made = await control.tokens.make(admin, { name: "ci", role: "viewer" }, { dryRun: true });
    expect(made.value.token).toBe("");
    expect(await control.dump()).toBe(before);
  });
});

describe("the first token", () => {
  it("goes to one of all nodes that start at once, and is never shown again", async () => {
    const given = await Promise.all([1, 2, 3, 4].map(() => ensureFirstToken(control.store, { nowMs })));
    const [first, ...others] = given.filter((one) => one !== undefined);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ role: "admin", name: "admin" });
    expect(await ensureFirstToken(control.store, { nowMs })).toBeUndefined();
    expect(await control.tokens.list(admin)).toHaveLength(1);
    const { items } = await control.audit.list(admin);
    expect(items).toEqual([expect.objectContaining({ actor: "sluice", action: "token.make", target: "admin" })]);
    expect(JSON.stringify(items)).not.toContain(first?.token);
  });

  it("is followed by another when the last admin token has expired", async () => {
    await ensureFirstToken(control.store, { nowMs });
    control.clock.advance(90 * dayMs);
    const next = await ensureFirstToken(control.store, { nowMs });
    expect(next?.name).toMatch(/^admin-/);
    expect(await ensureFirstToken(control.store, { nowMs })).toBeUndefined();
  });
});
