import type { Problem, SluiceError } from "sluice";
import { choice, text } from "sluice/shape";
import { describe, expect, it } from "vitest";
import { dryRun } from "../../../control-plane/admin-api/query-parameters.ts";
import { readQuery, wholeNumber } from "./read-query.ts";

const shapes = { limit: wholeNumber({ min: 1, max: 1_000 }), dry_run: dryRun, mode: choice(["a", "b"]), why: text() };

function findProblems(url: string): string[] {
  try {
    readQuery(shapes, url);
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(({ path, message }: Problem) => `${path} ${message}`);
  }
}

describe("a query", () => {
  it("is read by its shapes", () => {
    expect(readQuery(shapes, "/x?limit=20&dry_run=true&mode=a&why=because%20of+this")).toEqual({
      limit: 20,
      dry_run: true,
      mode: "a",
      why: "because of this",
    });
    expect(readQuery(shapes, "/x")).toEqual({});
    expect(readQuery(shapes, "/x?")).toEqual({});
  });

  it("is refused with every parameter that is wrong", () => {
    expect(findProblems("/x?limt=3&dry_run=yes&dry_run=no&limit=1001&mode=c")).toEqual([
      "limt is not a known parameter; there are limit, dry_run, mode, why",
      "dry_run must be given once",
      expect.stringContaining("limit must be a whole number from 1 to 1000"),
      expect.stringContaining("mode must be one of a, b"),
    ]);
    for (const bad of ["1e2", "", "0x10", " 1", "1.0", "９", "99999999999999999999"])
      expect(findProblems(`/x?limit=${encodeURIComponent(bad)}`), bad).toHaveLength(1);
    for (const bad of ["", "1", "TRUE", "yes"]) expect(findProblems(`/x?dry_run=${bad}`), bad).toHaveLength(1);
    expect(findProblems("/x?__proto__=1&constructor=2")).toHaveLength(2);
  });
});
