import { expect, it } from "vitest";
import { diffDocuments } from "./diff-documents.ts";

const entries = Array.from({ length: 20_000 }, (_, index) => `value-${index}`);

it("shows a large document as JSON, line by line like a small one, without control characters", () => {
  const before = { id: "p", deny: { user: [...entries, "\u009b31m"] } };
  const after = { id: "p", deny: { user: [...entries, "another"] } };
  const { changes, text } = diffDocuments(before, after);
  expect(changes).toEqual([{ path: "deny.user[20000]", change: "changed", before: "\u009b31m", after: "another" }]);
  const lines = text.split("\n");
  expect(lines.filter((line) => line.startsWith("-"))).toEqual(['-      "\\u009b31m"']);
  expect(lines.filter((line) => line.startsWith("+"))).toEqual(['+      "another"']);
});
