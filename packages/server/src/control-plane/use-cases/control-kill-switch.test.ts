import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";

let control: TestControl;
const operator = createActor("operator");

beforeEach(async () => {
  control = await openTestControl();
});

afterEach(() => control.close());

describe("the kill switch", () => {
  it("is on for an hour by default, and then off automatically", async () => {
    const nowMs = control.clock.epochMs();
    const on = await control.killSwitch.on(operator, "open", { why: "counters are down" });
    expect(on).toMatchObject({ generation: 1 });
    expect(on.value).toEqual({
      mode: "open",
      sinceMs: nowMs,
      untilMs: nowMs + 3_600_000,
      reason: "counters are down",
      author: "operator",
    });
    expect((await control.store.readPulse()).killSwitch).toMatchObject({ mode: "open", untilMs: nowMs + 3_600_000 });
    control.clock.advance(3_599_999);
    expect((await control.killSwitch.get(operator)).mode).toBe("open");
    control.clock.advance(1);
    expect((await control.killSwitch.get(operator)).mode).toBe("off");
    // Other clocks may be behind.
    expect((await control.killSwitch.off(operator)).generation).toBe(2);
    expect((await control.store.readPulse()).killSwitch).toBeUndefined();
    expect((await control.killSwitch.off(operator)).generation).toBeUndefined();
  });

  it("is turned off without a reason, and can change its mode while it is on", async () => {
    await control.killSwitch.on(operator, "open", { why: "x", forMs: 1_000 });
    await control.killSwitch.on(operator, "closed", { why: "y", forMs: 86_400_000 });
    expect(await control.killSwitch.get(operator)).toMatchObject({ mode: "closed", reason: "y" });
    expect((await control.killSwitch.off(operator)).value.mode).toBe("off");
    expect((await control.store.readPulse()).killSwitch).toBeUndefined();
    expect(control.announced).toEqual([1, 2, 3]);
    const { items } = await control.audit.list(admin, { kind: "kill_switch" });
    expect(items.map(({ action, why }) => [action, why])).toEqual([
      ["kill_switch.off", ""],
      ["kill_switch.on", "y"],
      ["kill_switch.on", "x"],
    ]);
  });

  it.each([
    ["without a reason", {}, "reason"],
    ["with an empty reason", { why: "  " }, "reason"],
    ["for less than a second", { why: "x", forMs: 999 }, "for_ms"],
    ["for more than a day", { why: "x", forMs: 86_400_001 }, "for_ms"],
    ["for no time", { why: "x", forMs: Number.NaN }, "for_ms"],
  ])("is not turned on %s", async (_, options, field) => {
    expect(await catchRefusal(control.killSwitch.on(operator, "open", options))).toMatchObject({
      code: "invalid_request",
      problems: [{ path: [field] }],
    });
    expect((await control.killSwitch.get(operator)).mode).toBe("off");
    expect(control.announced).toEqual([]);
  });

  it("is for operators and admins, and every other attempt is audited", async () => {
    for (const actor of [createActor("viewer"), createActor("editor", "api"), createActor("check")]) {
      expect(await catchRefusal(control.killSwitch.on(actor, "open", { why: "x" }))).toMatchObject({
        code: "permission_denied",
      });
      expect(await catchRefusal(control.killSwitch.off(actor))).toMatchObject({ code: "permission_denied" });
    }
    await control.settled();
    expect((await control.audit.list(admin, { outcome: "refused" })).items).toHaveLength(6);
    await control.killSwitch.on(admin, "closed", { why: "x", dryRun: true });
    expect((await control.killSwitch.get(operator)).mode).toBe("off");
  });
});
