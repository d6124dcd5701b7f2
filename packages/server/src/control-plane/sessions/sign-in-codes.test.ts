import { describe, expect, it } from "vitest";
import { linkWorkers } from "../../testing/link-workers.ts";
import { SignInCodes } from "./sign-in-codes.ts";

const grant = { kind: "token", token: "sluice_a" } as const;

describe("sign-in codes", () => {
  it("are taken once, within five minutes", async () => {
    let nowMs = 1_000;
    const codes = new SignInCodes({ nowMs: () => nowMs });
    const { code, expiresMs } = codes.make(grant, "a")!;
    expect(expiresMs).toBe(1_000 + 300_000);
    // 192 bits.
    expect(Buffer.from(code, "base64url")).toHaveLength(24);
    expect(await codes.take(`${code}x`)).toBeUndefined();
    expect(await codes.take(code)).toEqual(grant);
    expect(await codes.take(code)).toBeUndefined();
    const late = codes.make(grant, "a")!;
    nowMs += 300_000;
    expect(await codes.take(late.code)).toBeUndefined();
  });

  it("are bounded: those of one caller displace its own, and too many are refused", async () => {
    const codes = new SignInCodes();
    const kept = codes.make(grant, "b")!;
    const own = Array.from({ length: 11 }, () => codes.make(grant, "a")!);
    expect(await codes.take(own[0]!.code)).toBeUndefined();
    expect(await codes.take(own[1]!.code)).toEqual(grant);
    expect(await codes.take(kept.code)).toEqual(grant);
    for (let i = 0; i < 1_000; i++) codes.make(grant, `caller ${i}`);
    expect(codes.make(grant, "one more")).toBeUndefined();
  });

  it("of one worker are taken by whichever is asked, and still once", async () => {
    const link = linkWorkers();
    const [first, second, third] = [1, 2, 3].map((number) => new SignInCodes({ worker: link(number) }));
    const { code } = first!.make({ kind: "new admin" }, "start")!;
    expect(await second!.take(code)).toEqual({ kind: "new admin" });
    expect(await third!.take(code)).toBeUndefined();
    expect(await first!.take(code)).toBeUndefined();
  });
});
