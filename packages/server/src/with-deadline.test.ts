import { describe, expect, it } from "vitest";
import { withDeadline } from "./with-deadline.ts";

describe("a deadline", () => {
  it("returns what comes in time, even if that is an error", async () => {
    expect(await withDeadline(Promise.resolve(7), 60_000, () => new Error("late"))).toBe(7);
    await expect(withDeadline(Promise.reject(new Error("bad")), 60_000, () => new Error("late"))).rejects.toThrow(
      "bad",
    );
  });

  it("stops waiting for what never comes", async () => {
    await expect(withDeadline(new Promise(() => {}), 1, () => new Error("late"))).rejects.toThrow("late");
  });
});
