import { expect, it } from "vitest";
import { parseCores } from "./cores.ts";
import { readCpuUs, readRssBytes } from "./process-usage.ts";

it("reads CPU time and memory of a process", () => {
  const { user, system } = process.cpuUsage();
  // Counted in hundredths of a second.
  expect(readCpuUs(process.pid)).toBeGreaterThan(user + system - 100_000);
  expect(readRssBytes(process.pid)).toBeGreaterThan(1024 ** 2);
});

it("reads lists of cores", () => {
  expect(parseCores("0-2,5")).toEqual([0, 1, 2, 5]);
});
