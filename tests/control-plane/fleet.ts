import { expect, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import { decide } from "./start-fleet.ts";

export * from "./start-fleet.ts";

/** Two cores that others use as well: a short step may take long. */
export const patience = { timeout: 60_000, interval: 25 };

/** Resolves when each of these nodes decides this way. */
export async function untilAll(
  nodes: readonly Sluice[],
  expected: Readonly<Record<string, unknown>>,
  policy = "p",
): Promise<void> {
  await vi.waitFor(async () => {
    for (const node of nodes) expect(await decide(node, policy)).toMatchObject(expected);
  }, patience);
}
