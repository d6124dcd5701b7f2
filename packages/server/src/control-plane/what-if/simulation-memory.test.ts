import { expect, it } from "vitest";
import { findRoomBytes, planSimulationMemory } from "./simulation-memory.ts";

const mebibyte = 1024 * 1024;

it.each([256, 362, 1_024, 3_072, 65_536])("takes at most half of %d MiB of room", (room) => {
  const { heapMb, counterBytes } = planSimulationMemory(room * mebibyte)!;
  expect(heapMb).toBeGreaterThanOrEqual(64);
  expect(heapMb * mebibyte + 2 * counterBytes).toBeLessThanOrEqual((room * mebibyte) / 2);
});

it("takes no more than 1 GiB of heap and 256 MiB for each set of counters", () => {
  expect(planSimulationMemory(2 ** 40)).toEqual({ heapMb: 1_024, counterBytes: 256 * mebibyte });
});

it("takes nothing where little is left, or less than nothing", () => {
  for (const room of [255 * mebibyte, 0, -1]) expect(planSimulationMemory(room)).toBeUndefined();
});

it("finds how much this process may take", () => {
  expect(findRoomBytes()).toBeGreaterThan(0);
});
