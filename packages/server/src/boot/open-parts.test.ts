import { describe, expect, it } from "vitest";
import { OpenParts } from "./open-parts.ts";

describe("parts of a server", () => {
  it("are closed in reverse, one after the other", async () => {
    const parts = new OpenParts();
    const closed: string[] = [];
    for (const name of ["a", "b", "c"])
      parts.add(async (closing) => {
        await Promise.resolve();
        closed.push(`${name} ${closing}`);
      });
    await parts.close("gently");
    expect(closed).toEqual(["c gently", "b gently", "a gently"]);
  });

  it("are closed once, however often that is asked", async () => {
    const parts = new OpenParts();
    let times = 0;
    parts.add(() => {
      times += 1;
    });
    await Promise.all([parts.close("at once"), parts.close("gently")]);
    expect(times).toBe(1);
  });

  it("are all closed, even after one that fails to", async () => {
    const parts = new OpenParts();
    const closed: string[] = [];
    parts.add(() => closed.push("a"));
    parts.add(() => {
      throw new Error("b stays open");
    });
    await expect(parts.close("gently")).rejects.toThrow("b stays open");
    expect(closed).toEqual(["a"]);
  });
});
