import { decision as decisionShape } from "@sluice/protocol/http";
import fc from "fast-check";
import { createLimiter, type Decision, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { renderDecisionText } from "./render-decision-text.ts";

const tricky = 'quo"te\\back\nline\u2028é😀';

const policies = {
  policies: [
    {
      id: "several",
      match: { endpoint: "/several" },
      limits: [
        { name: "minute-and-hour", by: ["user"], windows: ["5/m", { limit: 7, per: "1h", name: "an hour" }] },
        { by: ["tenant"], windows: ["20/day in Europe/Berlin"] },
      ],
      warn_at: 0.5,
    },
    { id: "once", match: { endpoint: "/once" }, limits: [{ by: ["user"], windows: ["3 once"] }] },
    { id: "one", match: { endpoint: "/one" }, limits: [{ by: ["user"], windows: ["5/m"] }] },
    {
      id: "queue",
      match: { endpoint: "/queue" },
      limits: [{ by: ["user"], algorithm: "leaky_bucket", windows: ["5/m"] }],
    },
    { id: "distinct", match: { endpoint: "/distinct" }, limits: [{ distinct: "user", windows: ["1/h"] }] },
    { id: "watched", match: { endpoint: "/watched" }, mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }] },
    { id: "watched-too", match: { endpoint: "/watched" }, limits: [{ by: ["user"], windows: ["5/h"] }] },
    {
      id: "denied",
      match: { endpoint: "/denied" },
      deny: { user: ["a"] },
      limits: [{ by: ["user"], windows: ["1/h"] }],
    },
  ],
  default: "none",
};
const endpoints = ["/distinct", "/several", "/once", "/one", "/queue", "/watched", "/denied", "/none"];

describe("a decision as text", () => {
  it("is what JSON.stringify makes of it, whatever was decided", () => {
    const check = fc.record({
      endpoint: fc.constantFrom(...endpoints),
      user: fc.constantFrom("a", "b"),
      cost: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      flags: fc.record({
        preview: fc.boolean(),
        details: fc.boolean(),
        receipt: fc.boolean(),
        id: fc.constantFrom(undefined, "i", "j"),
      }),
      plain: fc.boolean(),
      afterMs: fc.integer({ min: 0, max: 40_000 }),
    });
    fc.assert(
      fc.property(fc.array(check, { maxLength: 30 }), (checks) => {
        const clock = new ManualClock();
        const limiter = createLimiter({ policies, clock });
        for (const { endpoint, user, cost, flags, plain, afterMs } of checks) {
          clock.advance(afterMs);
          const dimensions = { user, tenant: "t", endpoint };
          let decision: Decision;
          try {
            decision = limiter.checkSync({ dimensions, cost, ...(plain ? {} : flags) });
          } catch {
            continue;
          }
          expect(renderDecisionText(decision)).toBe(JSON.stringify(decisionShape.render(decision)));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("separates what one window reports for several limits", () => {
    const decision = createLimiter({ policies }).checkSync({ dimensions: { user: "a", endpoint: "/one" } });
    const others = [
      { policy: tricky },
      { scope: "s" },
      { version: 9 },
      { limit: 3 },
      { remaining: 1.5 },
      { used: 1e21 },
    ];
    // Each straight after the one that differs in this alone.
    for (const other of others) {
      for (const told of [decision, { ...decision, ...other }])
        expect(renderDecisionText(told)).toBe(JSON.stringify(decisionShape.render(told)));
    }
  });

  it("leaves out what is not finite", () => {
    const decision = createLimiter({ policies }).checkSync({ dimensions: { user: "a", endpoint: "/one" } });
    for (const other of [{ resetAfterMs: Infinity }, { resetAtMs: Infinity }, { retryAfterMs: Infinity }]) {
      const told = { ...decision, ...other };
      expect(renderDecisionText(told)).toBe(JSON.stringify(decisionShape.render(told)));
      expect(renderDecisionText(told)).not.toContain("Infinity");
    }
  });
});
