import { flavors } from "@sluice/test-servers";
import { describe, expect, test } from "vitest";
import { failoverFaults } from "./failover-faults.ts";

describe.each(flavors)("counters on several %s servers stay honest through", (flavor) => {
  test.each(failoverFaults)("$name", { timeout: 180_000 }, async ({ play }) => {
    expect((await play(flavor)).breaches).toEqual([]);
  });
});
