import { expect, it } from "vitest";
import { StrainedServers } from "./strained-servers.ts";

const asked = {} as Parameters<StrainedServers["findDecisions"]>[0];
const on = (name: string, cell?: string) => ({ findShard: () => ({ name, cell }) });
const server = (name: string, cpu: number | undefined, cell?: string) => ({
  ...{ name, cell },
  load: { cpu, operationsPerSecond: 9, evictedKeys: 0, memoryBytes: 1, maxMemoryBytes: 0, replicas: [] },
});

it("strains a server whose main thread was above 80 % in the last five minutes, and no other", () => {
  let nowMs = 0;
  const strained = new StrainedServers(() => nowMs);
  const look = (cpu: number | undefined): void =>
    strained.look({
      calls: 0,
      questions: 0,
      shards: [server("a:1", cpu), server("b:1", 0.8), server("a:1", 0.1, "acme")],
    });
  look(undefined);
  expect(strained.findDecisions(asked, on("a:1"))).toBeUndefined();
  look(0.81);
  expect(strained.findDecisions(asked, on("a:1"))).toBe(7);
  expect(strained.findDecisions(asked, on("b:1"))).toBeUndefined();
  expect(strained.findDecisions(asked, on("a:1", "acme"))).toBeUndefined();
  expect(strained.findDecisions(asked, { findShard: () => undefined })).toBeUndefined();
  nowMs = 299_999;
  look(0.3);
  expect(strained.findDecisions(asked, on("a:1"))).toBe(7);
  nowMs = 300_000;
  look(0.3);
  expect(strained.findDecisions(asked, on("a:1"))).toBeUndefined();
});

it("expects fewer decisions of a lease if few travel together, because then each costs the server more", () => {
  const strained = new StrainedServers(() => 0);
  const find = (calls: number, questions: number): number | undefined => {
    strained.look({ calls, questions, shards: [server("a:1", 0.9)] });
    return strained.findDecisions(asked, on("a:1"));
  };
  expect(find(10, 160)).toBe(4);
  expect(find(20, 330)).toBe(7);
  expect(find(30, 331)).toBe(4);
  // Nothing was asked since.
  expect(find(30, 331)).toBe(7);
});
