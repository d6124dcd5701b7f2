import { parsePolicies } from "sluice";
import { expect, it } from "vitest";
import { findHeadroom, type PeaksByStep } from "./find-headroom.ts";

const none: PeaksByStep = { minute: [], hour: [], day: [] };

function testPolicy(limits: readonly object[]) {
  return parsePolicies({ policies: [{ id: "p", match: {}, limits, on_failure: "open" }] }).policies[0]!;
}

it("finds the window that came closest, by periods that fit it", () => {
  const policy = testPolicy([
    { by: ["tenant"], windows: ["10/s", "1000/h"] },
    { by: [], windows: ["60000/d"] },
  ]);
  const peaks = {
    minute: [{ policy: "p", limit: "tenant", dimension: "tenant", tier: undefined, cost: 300 }],
    hour: [{ policy: "p", limit: "tenant", dimension: "tenant", tier: undefined, cost: 900 }],
    day: [{ policy: "p", limit: "all", dimension: "", tier: undefined, cost: 6_000 }],
  };
  expect(findHeadroom(policy, peaks)).toEqual({
    ...{ share: 0.9, limit: "tenant", tier: undefined, window: "1000/h", cost: 900, capacity: 1_000, step: "hour" },
  });
  expect(findHeadroom(policy, { ...peaks, hour: [] })).toMatchObject({ share: 0.5, window: "10/s", capacity: 600 });
});

it("knows nothing of limits by several dimensions, of others' peaks, and of quotas that never refill", () => {
  const peak = { policy: "p", limit: "tenant,user", dimension: "tenant", tier: undefined, cost: 5 };
  const all = { minute: [peak], hour: [peak], day: [peak] };
  expect(findHeadroom(testPolicy([{ by: ["tenant", "user"], windows: ["10/m"] }]), all)).toBeUndefined();
  const other = { ...peak, limit: "tenant", policy: "q" };
  expect(
    findHeadroom(testPolicy([{ by: ["tenant"], windows: ["10/m"] }]), { ...none, minute: [other] }),
  ).toBeUndefined();
});

it("compares subjects with the windows of their tier, and those of a tier that it does not know with its own", () => {
  const policy = testPolicy([{ by: ["tenant"], windows: ["100/m"], tiers: { pro: { windows: ["1000/m"] } } }]);
  const peak = (tier: string | undefined, cost: number) => ({
    ...{ policy: "p", limit: "tenant", dimension: "tenant", tier, cost },
  });
  const closest = (...minute: ReturnType<typeof peak>[]) => findHeadroom(policy, { ...none, minute });
  expect(closest(peak(undefined, 50), peak("pro", 900))).toMatchObject({ tier: "pro", window: "1000/m", share: 0.9 });
  expect(closest(peak(undefined, 50), peak("pro", 400))).toMatchObject({ tier: undefined, share: 0.5 });
  expect(closest(peak("trial", 80), peak("pro", 400))).toMatchObject({ tier: undefined, share: 0.8 });
});
