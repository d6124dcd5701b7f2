import { describe, expect, it } from "vitest";
import { Draining } from "./draining.ts";

describe("draining", () => {
  it("is heard once by all that have not withdrawn, in order, and at once by those that come later", () => {
    const draining = new Draining();
    const heard: string[] = [];
    draining.onBegin(() => heard.push("first"));
    const withdraw = draining.onBegin(() => heard.push("withdrawn"));
    draining.onBegin(() => heard.push("second"));
    withdraw();
    expect([heard, draining.begun]).toEqual([[], false]);
    draining.begin();
    draining.begin();
    draining.onBegin(() => heard.push("late"))();
    expect([heard, draining.begun]).toEqual([["first", "second", "late"], true]);
  });
});
