import type { HotKey } from "sluice";
import { describe, expect, it } from "vitest";
import { mergeHotKeys, type NodeHotKeys } from "./merge-hot-keys.ts";

const key = (subject: string, perSecond: number, more: Partial<HotKey> = {}): HotKey => ({
  ...{ policy: "api", scope: "user", subject, perSecond, deniedPerSecond: 0, errorPerSecond: 0 },
  ...more,
});

function told(name: string, ageMs: number, ...keys: readonly HotKey[]): NodeHotKeys {
  const sum = (read: (one: HotKey) => number): number => keys.reduce((total, one) => total + read(one), 0);
  const totals = { perSecond: sum((one) => one.perSecond), deniedPerSecond: sum((one) => one.deniedPerSecond) };
  return { node: { id: `${name}-1`, name }, ageMs, report: { keys, totals } };
}

describe("hot keys of several nodes", () => {
  it("are added up by policy, scope and subject, errors and totals as well", () => {
    const one = told(
      "one",
      0,
      key("whale", 100, { errorPerSecond: 3, deniedPerSecond: 7 }),
      key("whale", 5, { scope: "ip" }),
    );
    const two = told(
      "two",
      4_200,
      key("whale", 50, { errorPerSecond: 1, deniedPerSecond: 2 }),
      key("whale", 6, { policy: "login" }),
    );
    expect(mergeHotKeys([one, two])).toEqual({
      by: "rate",
      keys: [
        { ...key("whale", 150, { errorPerSecond: 4, deniedPerSecond: 9 }), parts: 2 },
        { ...key("whale", 6, { policy: "login" }), parts: 1 },
        { ...key("whale", 5, { scope: "ip" }), parts: 1 },
      ],
      totals: { perSecond: 161, deniedPerSecond: 9 },
      reported: 2,
      oldestMs: 4_200,
    });
  });

  it("are ordered by their certain rate, and cut off", () => {
    const keys = [key("sure", 60), key("perhaps", 100, { errorPerSecond: 90 }), key("least", 5)];
    const { keys: merged } = mergeHotKeys([told("one", 0, ...keys)], { count: 2 });
    expect(merged.map(({ subject }) => subject)).toEqual(["sure", "perhaps"]);
  });

  it("are by denials those that have any", () => {
    const keys = [
      key("busy", 900),
      key("refused", 10, { deniedPerSecond: 9 }),
      key("both", 90, { deniedPerSecond: 1 }),
    ];
    const { by, keys: merged } = mergeHotKeys([told("one", 0, ...keys)], { by: "denials" });
    expect([by, ...merged.map(({ subject }) => subject)]).toEqual(["denials", "refused", "both"]);
  });

  it("keep apart names that only look alike when they are joined", () => {
    const keys = [key('b"]', 4, { scope: "a" }), key("b", 3, { scope: 'a"]' }), key("|", 2, { scope: "" })];
    expect(mergeHotKeys([told("one", 0, ...keys)]).keys).toHaveLength(3);
  });

  it("are empty without reports", () => {
    expect(mergeHotKeys([])).toEqual({
      ...{ by: "rate", keys: [], totals: { perSecond: 0, deniedPerSecond: 0 }, reported: 0, oldestMs: 0 },
    });
  });
});
