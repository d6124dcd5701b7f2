import { describe, expect, it } from "vitest";
import { parseBytes, parseQuantity, parseShare, parseWholeQuantity } from "./parse-quantity.ts";

const any = { least: 0, most: 1e12 };

describe("quantities", () => {
  it.each([
    ["250", 250],
    ["0.5", 0.5],
    ["100k", 100_000],
    ["1.5M", 1_500_000],
    ["2G", 2_000_000_000],
  ])("reads %s", (text, value) => expect(parseQuantity("--rate", text, any)).toBe(value));

  it.each(["", "k", "1m", "1e6", "-1", "1 000", "0x10", "NaN", "1kk"])(
    "refuses %j, and shows how to write it",
    (text) =>
      expect(() => parseQuantity("--rate", text, any)).toThrow("it should be a number such as 250, 100k or 1.5M"),
  );

  it("names the bounds of a number that is beyond them", () => {
    expect(() => parseQuantity("--peak", "0.5", { least: 1, most: 10 })).toThrow("from 1 to 10");
    expect(() => parseQuantity("--peak", "11", { least: 1, most: 10 })).toThrow('--peak is "11"');
  });

  it("refuses a part of what is whole", () => {
    expect(parseWholeQuantity("--pods", "1.5k", any)).toBe(1_500);
    expect(() => parseWholeQuantity("--pods", "1.5", any)).toThrow("it should be a whole number");
  });

  it("reads shares with and without a percent sign", () => {
    expect([parseShare("--leases", "80%"), parseShare("--leases", "0.8"), parseShare("--leases", "1")]).toEqual([
      0.8, 0.8, 1,
    ]);
    for (const wrong of ["80", "101%", "%", "-1%"])
      expect(() => parseShare("--leases", wrong), wrong).toThrow("a share such as 80% or 0.8");
  });

  it("reads sizes in binary units, and no others", () => {
    expect([parseBytes("--shard-memory", "512MiB", any), parseBytes("--shard-memory", "1.5GiB", any)]).toEqual([
      536_870_912, 1_610_612_736,
    ]);
    for (const wrong of ["8GB", "8", "8gib"])
      expect(() => parseBytes("--shard-memory", wrong, any), wrong).toThrow("a size such as 512MiB or 8GiB");
  });
});
