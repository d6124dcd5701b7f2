import { describe, expect, it } from "vitest";
import { RunDelay } from "./run-delay.ts";

describe("the time that this thread waited for a processor", () => {
  it("is read from Linux's account of it, at most every 10 ms", () => {
    let reads = 0;
    const delay = new RunDelay(() => `123456789 ${++reads}500000 42\n`);
    expect(delay.totalMs(0)).toBe(1.5);
    expect(delay.totalMs(9)).toBe(1.5);
    expect(delay.totalMs(10)).toBe(2.5);
    expect(reads).toBe(2);
  });

  it.each([
    [
      "cannot be read",
      () => {
        throw new Error("ENOENT");
      },
    ],
    ["says something else", () => "no numbers"],
  ])("is 0 if the account %s, which is not read again", (_name, read) => {
    let reads = 0;
    const delay = new RunDelay(() => {
      reads += 1;
      return read();
    });
    expect(delay.totalMs(0)).toBe(0);
    expect(delay.totalMs(100)).toBe(0);
    expect(reads).toBe(1);
  });
});
