import { flavors } from "@sluice/test-servers";
import { describe, expect, test } from "vitest";
import { proxyFaults } from "./proxy-faults.ts";
import { singleServerFaults } from "./single-server-faults.ts";

const timeout = 60_000;

describe("counters on one server stay honest through", () => {
  test.each([...singleServerFaults, ...proxyFaults])("$name", { timeout }, async ({ play }) => {
    expect((await play("valkey")).breaches).toEqual([]);
  });

  // The flavors differ in how they start, end and replicate, so not everything is played on both.
  test.each(flavors.filter((flavor) => flavor !== "valkey"))("crash and restart of %s", { timeout }, async (flavor) => {
    const crash = singleServerFaults.find(({ name }) => name === "crash and restart")!;
    expect((await crash.play(flavor)).breaches).toEqual([]);
  });
});
