import { describe, expect, it } from "vitest";
import { parseRange, type RangeFlags } from "./parse-range.ts";

const nowMs = Date.parse("2026-11-18T16:20:00Z");

describe("the time that a command shows", () => {
  it.each<readonly [RangeFlags, string, string]>([
    [{}, "2026-11-17T16:20:00Z", "2026-11-18T16:20:00Z"],
    [{ since: "1h" }, "2026-11-18T15:20:00Z", "2026-11-18T16:20:00Z"],
    [{ from: "2026-11-01", to: "2026-11-02" }, "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"],
    [{ to: "1d" }, "2026-11-16T16:20:00Z", "2026-11-17T16:20:00Z"],
    [{ month: true }, "2026-11-01T00:00:00Z", "2026-11-18T16:20:00Z"],
    [{ month: "2026-02" }, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"],
    [{ month: "2025-12" }, "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"],
  ])("of %j is from %s to %s", (flags, from, to) => {
    expect(parseRange(flags, nowMs)).toEqual({ fromMs: Date.parse(from), toMs: Date.parse(to) });
  });

  it.each<readonly [RangeFlags, RegExp]>([
    [{ month: true, since: "1h" }, /--month and --since/],
    [{ since: "1h", from: "2h" }, /--since and --from/],
    [{ since: "soon" }, /--since is "soon"/],
    [{ since: "2026-12-01" }, /still to come/],
    [{ from: "1h", to: "2h" }, /--to 2h is before --from 1h/],
    [{ month: "2026-13" }, /--month is "2026-13"/],
    [{ month: "2027-01" }, /still to come/],
  ])("refuses %j", (flags, message) => {
    expect(() => parseRange(flags, nowMs)).toThrow(message);
  });
});
