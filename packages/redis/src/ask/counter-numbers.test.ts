import fc from "fast-check";
import { compileTestLimit, testWindow } from "sluice/testing";
import { describe, expect, it } from "vitest";
import { type Asked, CounterNumbers } from "./counter-numbers.ts";

const createLimit = (policy: string, limit: number) =>
  compileTestLimit({ algorithm: "gcra", windows: [testWindow(limit, 1000)], policy });

/** Windows by the counter they are of: the last two are one policy's before and after an edit, and have their counters in common. */
const windows = new Map([
  [createLimit("one", 10).windows[0]!, "one"],
  [createLimit("two", 10).windows[0]!, "two"],
  [createLimit("two", 20).windows[0]!, "two"],
]);

const listNumbers = (numbers: CounterNumbers, asked: readonly Asked[]): number[] => {
  numbers.begin(asked);
  return asked.map((_, index) => numbers.numberAt(index));
};

describe("counters of one call", () => {
  it("are numbered from 1 as they come, each once, call after call", () => {
    const numbers = new CounterNumbers(127);
    const asked = fc.record({
      window: fc.constantFrom(...windows.keys()),
      // Ends that are alike, so that many are looked for in the same place.
      subject: fc.oneof(
        fc.constantFrom("", "u", "ü", "user-1"),
        fc.stringMatching(/^[a-c]{1,4}same-end$/),
        fc.string({ unit: "binary" }),
      ),
    });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 127 }), (all) => {
        const known = new Map<string, number>();
        const expected = all.map((one) => {
          const name = JSON.stringify([windows.get(one.window as never), one.subject]);
          if (!known.has(name)) known.set(name, known.size + 1);
          return known.get(name);
        });
        expect(listNumbers(numbers, all)).toEqual(expected);
      }),
    );
  });

  it("are found among as many as a call holds, even if all hash to one place", () => {
    const [first] = windows.keys();
    const asked = Array.from({ length: 127 }, (_, i) => ({
      window: first!,
      subject: `${String(i % 100).padStart(3, "0")}-ends-alike`,
    }));
    const expected = asked.map((_, i) => (i % 100) + 1);
    expect(listNumbers(new CounterNumbers(127), asked)).toEqual(expected);
  });
});
