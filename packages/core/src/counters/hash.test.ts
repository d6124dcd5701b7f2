import * as fc from "fast-check";
import { expect, it } from "vitest";
import { joinSubject } from "../subject/join-subject.ts";
import { hashJoined, hashText } from "./hash.ts";

const value = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: fc.constantFrom("a", "|", "\\", "ÿ", "ż"), maxLength: 12 }),
);

it("hashes two values as the text that they are joined to, unless they would be escaped or are wide", () => {
  fc.assert(
    fc.property(value, value, (first, second) => {
      const [joined, text] = [
        { lo: 0, hi: 0 },
        { lo: 0, hi: 0 },
      ];
      hashText(joinSubject([first, second]), text);
      const isPlain = /^[\0-\xff]*$/.test(first + second) && !/[|\\]/.test(first + second);
      expect(hashJoined(first, second, joined)).toBe(isPlain);
      if (isPlain) expect(joined).toEqual(text);
    }),
    { numRuns: 2000 },
  );
});
