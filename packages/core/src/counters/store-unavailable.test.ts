import { describe, expect, it } from "vitest";
import { SluiceError } from "../errors.ts";
import { orUnavailable, outageReason, StoreUnavailable } from "./store-unavailable.ts";

describe("StoreUnavailable", () => {
  it("says why in a word for programs and in a sentence for people", () => {
    const error = new StoreUnavailable("storage_timeout");
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: "StoreUnavailable",
      code: "store_unavailable",
      reason: "storage_timeout",
      message: "the counters did not answer within the deadline; the request may have been carried out all the same",
    });
    expect(new StoreUnavailable("storage_unavailable", "shard 3 is down").message).toBe("shard 3 is down");
  });

  it("is what every failure of a store becomes, with the store's error as its cause", async () => {
    const cause = new Error("connect ECONNREFUSED redis://user:hunter2@host");
    const reject = (error: unknown) => orUnavailable(() => Promise.reject(error));
    await expect(reject(cause)).rejects.toMatchObject({ reason: "storage_unavailable", cause });
    await expect(reject(cause)).rejects.not.toThrow("hunter2");
    const timeout = new StoreUnavailable("storage_timeout");
    await expect(reject(timeout)).rejects.toBe(timeout);
    const thrown = orUnavailable(() => {
      throw cause;
    });
    await expect(thrown).rejects.toMatchObject({ reason: "storage_unavailable", cause });
  });

  it("is not what the caller's mistakes become", async () => {
    const mistake = new SluiceError("idempotency_conflict", "used before");
    await expect(orUnavailable(() => Promise.reject(mistake))).rejects.toBe(mistake);
    expect(() => outageReason(mistake)).toThrow(mistake);
  });

  it("gives a decision its reason; any other error stands for a store that cannot be reached", () => {
    expect(outageReason(new StoreUnavailable("storage_overloaded"))).toBe("storage_overloaded");
    for (const other of [new TypeError("x is not a function"), "gone", undefined]) {
      expect(outageReason(other)).toBe("storage_unavailable");
    }
  });
});
