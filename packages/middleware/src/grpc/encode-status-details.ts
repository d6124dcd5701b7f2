import type { RefusalBody } from "../refusal.ts";

/**
 * The trailer `grpc-status-details-bin` of a refusal: a `google.rpc.Status` with `RetryInfo` where waiting helps,
 * `QuotaFailure` that names the limits without room, and `BadRequest` that names the fields that are wrong.
 */
export function encodeStatusDetails(code: number, message: string, problem: RefusalBody): Buffer {
  return Buffer.concat([
    wholeNumber(1, code),
    lengthPrefixed(2, message),
    ...listDetails(problem).map(([type, value]) =>
      lengthPrefixed(
        3,
        Buffer.concat([lengthPrefixed(1, `type.googleapis.com/google.rpc.${type}`), lengthPrefixed(2, value)]),
      ),
    ),
  ]);
}

type Detail = readonly [type: "RetryInfo" | "QuotaFailure" | "BadRequest", value: Buffer];

function listDetails(problem: RefusalBody): readonly Detail[] {
  if ("problems" in problem) {
    return [["BadRequest", pairs(problem.problems.map(({ field, message }) => [field, message]))]];
  }
  const details: Detail[] = [];
  const { retry_after_ms: waitMs, "violated-policies": violated } = problem;
  if (waitMs !== undefined) details.push(["RetryInfo", lengthPrefixed(1, duration(waitMs))]);
  if (violated !== undefined) details.push(["QuotaFailure", pairs(violated.map((name) => [name, problem.detail]))]);
  return details;
}

/** `QuotaFailure` and `BadRequest` have one shape: what it is about, and what is wrong with it, any number of times. */
function pairs(listed: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    listed.map(([about, what]) =>
      lengthPrefixed(1, Buffer.concat([lengthPrefixed(1, about), lengthPrefixed(2, what)])),
    ),
  );
}

/** `google.protobuf.Duration`. */
function duration(ms: number): Buffer {
  return Buffer.concat([wholeNumber(1, Math.floor(ms / 1000)), wholeNumber(2, (ms % 1000) * 1_000_000)]);
}

const varintType = 0;
const lengthPrefixedType = 2;

/** A field of type int32 or int64 that is not negative. */
function wholeNumber(field: number, value: number): Buffer {
  return Buffer.concat([varint(field * 8 + varintType), varint(value)]);
}

/** A field of type string or bytes, or another message. */
function lengthPrefixed(field: number, value: string | Buffer): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([varint(field * 8 + lengthPrefixedType), varint(bytes.length), bytes]);
}

/** Seven bits a byte, the lowest first; the eighth says that more follow. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
  return Buffer.from(bytes);
}
