import { describe, expect, it } from "vitest";
import { callBoundsMs, countAnswer, createShardFigures, findCallFailure } from "./shard-figures.ts";

describe("statistics of calls to a server", () => {
  it("sorts durations into buckets, whose bounds belong to the lower one", () => {
    const figures = createShardFigures();
    for (const ms of [0.01, 0.1, 0.11, 1, 2000, 2001, 60_000]) countAnswer(figures, ms);
    const counted = Object.fromEntries([...callBoundsMs, Infinity].map((bound, i) => [bound, figures.durations[i]]));
    expect(counted).toMatchObject({ 0.1: 2, 0.25: 1, 0.5: 0, 1: 1, 2000: 1, Infinity: 2 });
    expect(figures.durations.reduce((sum, one) => sum + one, 0)).toBe(7);
    expect(figures.durationsSumMs).toBeCloseTo(64_002.22);
    expect(figures.roundTripMs).toBe(60_000);
  });

  it.each([
    ["NOAUTH Authentication required.", "access"],
    ["NOPERM this user has no permissions", "access"],
    ["LOADING Redis is loading the dataset in memory", "passing"],
    ["READONLY You can't write against a read only replica.", "passing"],
    ["CLUSTERDOWN The cluster is down", "passing"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "memory"],
    ["BUSY Valkey is busy running a script.", "script"],
    ["ERR user_script:3: attempt to index a nil value script: 7f", "script"],
    ["ERR unknown command 'EVALSHA'", "reply"],
    ["WRONGTYPE Operation against a key", "reply"],
    ["a script answered null", "reply"],
    ["Socket closed unexpectedly", "connection"],
    ["connect ECONNREFUSED 127.0.0.1:1", "connection"],
  ])("classifies %s", (message, failure) => {
    expect(findCallFailure(new Error(message))).toBe(failure);
  });

  it("takes a reply that cannot be decoded for one", () => {
    expect(findCallFailure(new TypeError("Cannot read properties of undefined"))).toBe("reply");
    expect(findCallFailure("strange")).toBe("reply");
  });
});
