import protobuf from "protobufjs";
import { expect, it } from "vitest";
import type { RefusalBody } from "../refusal.ts";
import { encodeStatusDetails } from "./encode-status-details.ts";

const { root } = protobuf.parse(
  `
  syntax = "proto3";
  package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
  message QuotaFailure {
    message Violation { string subject = 1; string description = 2; }
    repeated Violation violations = 1;
  }
  message BadRequest {
    message FieldViolation { string field = 1; string description = 2; }
    repeated FieldViolation field_violations = 1;
  }
`,
  { keepCase: true },
);

function decode(type: string, bytes: Uint8Array): Record<string, unknown> {
  const found = root.lookupType(`google.rpc.${type}`);
  return found.toObject(found.decode(bytes), { longs: Number });
}

/** The status, with every detail under its name. */
function decodeStatus(bytes: Uint8Array): Record<string, unknown> {
  const { details = [], ...status } = decode("Status", bytes) as {
    details?: { type_url: string; value: Uint8Array }[];
  };
  const named = details.map(({ type_url, value }) => {
    const name = /^type\.googleapis\.com\/google\.rpc\.(\w+)$/.exec(type_url)![1]!;
    return [name, decode(name, value)];
  });
  return { ...status, ...Object.fromEntries(named) };
}

const denied: RefusalBody = {
  type: "about:blank",
  title: "Too Many Requests",
  status: 429,
  detail: "No room.",
  reason: "over_limit",
  cost: 1,
};

it.each([
  [0, { seconds: 0, nanos: 0 }],
  [1, { seconds: 0, nanos: 1_000_000 }],
  [999, { seconds: 0, nanos: 999_000_000 }],
  [127_000, { seconds: 127, nanos: 0 }],
  [128_128, { seconds: 128, nanos: 128_000_000 }],
  [3_600_000, { seconds: 3600, nanos: 0 }],
  [9_007_199_254_740_991, { seconds: 9_007_199_254_740, nanos: 991_000_000 }],
])("encodes a wait of %i ms exactly", (retry_after_ms, retry_delay) => {
  expect(decodeStatus(encodeStatusDetails(8, "No room.", { ...denied, retry_after_ms }))).toEqual({
    code: 8,
    message: "No room.",
    RetryInfo: { retry_delay },
  });
});

it("names the exhausted limits, in any alphabet", () => {
  const problem = { ...denied, "violated-policies": ["limit/ip", "ж/".repeat(200)] };
  expect(decodeStatus(encodeStatusDetails(8, "Später", problem))).toEqual({
    code: 8,
    message: "Später",
    QuotaFailure: {
      violations: [
        { subject: "limit/ip", description: "No room." },
        { subject: "ж/".repeat(200), description: "No room." },
      ],
    },
  });
});

it("names the fields that are wrong", () => {
  const problem: RefusalBody = {
    type: "about:blank",
    title: "Bad Request",
    status: 400,
    code: "invalid_request",
    detail: "cost is too large",
    problems: [{ field: "cost", message: "is too large" }],
  };
  expect(decodeStatus(encodeStatusDetails(3, "cost is too large", problem))).toEqual({
    code: 3,
    message: "cost is too large",
    BadRequest: { field_violations: [{ field: "cost", description: "is too large" }] },
  });
});
