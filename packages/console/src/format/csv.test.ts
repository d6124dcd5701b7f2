import { expect, it } from "vitest";
import { renderCsv } from "./csv.ts";

it("writes cells that a spreadsheet reads as they are, and runs none as a formula", () => {
  expect(
    renderCsv(
      ["policy", "denied"],
      [
        ["a,b", 1],
        ['say "x"', undefined],
        ["=cmd()", true],
      ],
    ),
  ).toBe('policy,denied\r\n"a,b",1\r\n"say ""x""",\r\n\'=cmd(),true\r\n');
});
