import { describe, expect, it } from "vitest";
import { makeMatrix, parseWindows, windowText } from "./plan-matrix.ts";

const plan = (name: string, more: object) => ({
  plan: name,
  version: 1,
  limits: [],
  without: [],
  in_files: [],
  subjects: [],
  ...more,
});

describe("the matrix of plans", () => {
  it("has each limit once, with what holds under every plan", () => {
    const rows = makeMatrix([
      plan("free", {
        limits: [{ policy: "orders", limit: "user", by: ["user"], windows: ["10/s"] }],
        without: [{ policy: "search", limit: "user", by: ["user"], plans: ["pro"] }],
      }),
      plan("pro", {
        limits: [{ policy: "search", limit: "user", by: ["user"], windows: [{ limit: 5, per: "1d" }] }],
        without: [{ policy: "orders", limit: "user", by: ["user"], windows: ["1/s"], plans: ["free"] }],
        in_files: [{ policy: "a", limit: "ip", by: ["ip"], windows: ["7/s"] }],
      }),
    ]);
    expect(rows.map(({ policy }) => policy)).toEqual(["a", "orders", "search"]);
    expect(rows.map(({ cells }) => [cells.get("free")?.kind, cells.get("pro")?.kind])).toEqual([
      [undefined, "file"],
      ["plan", "own"],
      ["none", "plan"],
    ]);
    expect(rows[2]?.cells.get("pro")?.windows).toEqual(['{"limit":5,"per":"1d"}']);
  });

  it("reads windows back as they were written, in short and in long form", () => {
    const windows = ["100/s burst 200", { limit: 5, per: { calendar: "day", time_zone: "UTC" } }, "1000/h"];
    expect(parseWindows(windows.map(windowText).join(", "))).toEqual(windows);
    expect(parseWindows(" , ")).toEqual([]);
    expect(parseWindows("{broken")).toEqual(["{broken"]);
  });
});
