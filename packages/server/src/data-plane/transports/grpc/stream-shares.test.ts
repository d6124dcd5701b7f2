import { describe, expect, it } from "vitest";
import { StreamShares } from "./stream-shares.ts";

describe("shares of streams", () => {
  it("are the same for all that have something undecided, and grow again when others are through", () => {
    const shares = new StreamShares();
    const seen = [shares.share];
    for (let streams = 1; streams <= 4; streams++) {
      shares.begin();
      seen.push(shares.share);
    }
    shares.end();
    seen.push(shares.share);
    expect(seen).toEqual([512, 512, 256, 170, 128, 170]);
  });

  it("do not fall below what makes a full call, however many there are", () => {
    const shares = new StreamShares();
    for (let streams = 0; streams < 10_000; streams++) shares.begin();
    expect(shares.share).toBe(64);
  });
});
