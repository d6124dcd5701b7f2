import { describe, expect, it } from "vitest";
import { findPoorNames } from "./file-names.ts";
import { readSourceTree } from "./source-tree.ts";

describe("file names", () => {
  it("say what is inside, all over this repository", () => {
    expect(findPoorNames(readSourceTree().keys())).toEqual([]);
  });

  it.each([
    "src/utils.ts",
    "src/test-helpers.ts",
    "src/common/time.ts",
    "src/limiterImpl.test.ts",
    "docs/misc.md",
    "src/counter-manager.ts",
    "src/CounterStore.ts",
    "src/counter_store.ts",
    "src/CounterTable.tsx",
  ])("are refused when like %s", (file) => {
    expect(findPoorNames([file])).not.toEqual([]);
  });

  it.each(["src/counter-store.ts", "src/counter-table.tsx", "src/ipv6.test.ts", "README.md", "vitest.config.ts"])(
    "are accepted when like %s",
    (file) => {
      expect(findPoorNames([file])).toEqual([]);
    },
  );
});
