import { SluiceError, StoreUnavailable } from "sluice";
import type { StoreUnavailableReason } from "sluice/store";
import { describe, expect, it } from "vitest";
import { describeError, isOurs } from "./describe-error.ts";

const problems = Array.from({ length: 23 }, (_, i) => ({ path: ["checks", i], message: "must be something else" }));

describe("what callers see of an error", () => {
  it("is its code, its message and the first fields that are wrong", () => {
    const told = describeError(new SluiceError("invalid_request", "two lines\nof it", problems));
    expect(told).toMatchObject({ code: "invalid_request", message: "two lines\nof it", more: 3 });
    expect([told.fields.length, told.fields[0]]).toEqual([
      20,
      { field: "checks[0]", message: "must be something else" },
    ]);
  });

  it("is one line if no fields are to be listed", () => {
    const told = describeError(new SluiceError("invalid_request", "two lines\nof it", problems), 0);
    expect(told).toEqual({ code: "invalid_request", message: "two lines", fields: [], more: 23 });
  });

  it("is bounded and well-formed", () => {
    const long = [{ path: ["\ud83d".repeat(400)], message: "😀".repeat(2_000) }];
    const { message, fields } = describeError(new SluiceError("invalid_request", `x${"😀".repeat(2_000)}`, long));
    for (const [text, most] of [
      [message, 1_001],
      [fields[0]!.field, 256],
      [fields[0]!.message, 1_001],
    ] as const) {
      expect(text.length).toBeLessThanOrEqual(most);
      expect(() => encodeURI(text)).not.toThrow();
    }
  });

  it("is nothing internal, and an unforeseen error is ours", () => {
    for (const error of [
      new TypeError("hunter2 is not a function"),
      new SluiceError("internal", "hunter2"),
      new SluiceError("not_local", "hunter2"),
      "hunter2",
    ]) {
      expect(describeError(error)).toMatchObject({ code: "internal", fields: [] });
      expect(JSON.stringify(describeError(error))).not.toContain("hunter2");
      expect(isOurs(error)).toBe(true);
    }
    expect(isOurs(new SluiceError("overloaded", "too much"))).toBe(false);
  });

  it("asks no caller to repeat what counters may have done before they fell silent", () => {
    const told = (reason: StoreUnavailableReason): string => {
      const error = new StoreUnavailable(reason, "redis://user:hunter2@10.1.2.3");
      expect(isOurs(error)).toBe(false);
      expect(describeError(error)).toMatchObject({ code: "store_unavailable", fields: [] });
      return describeError(error).message;
    };
    expect(told("storage_unavailable")).toMatch(/^the counters cannot be reached; .* so repeat it/);
    expect(told("storage_overloaded")).toMatch(/^too many checks are waiting for the counters; .* so repeat it/);
    expect(told("storage_timeout")).toMatch(/^the counters did not answer in time; .* only if that does no harm$/);
  });
});
