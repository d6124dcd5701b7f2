import type { RefusalBody } from "../refusal.ts";

/**
 * The trailer `grpc-status-details-bin` of a refusal: a `google.rpc.Status` with `RetryInfo` if waiting helps,
 * `QuotaFailure` that names the exhausted limits, or `BadRequest` that names the wrong fields.
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

/** `QuotaFailure` and `BadRequest` share a shape: repeated pairs of a name and a description. */
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

/** A non-negative field of type int32 or int64. */
function wholeNumber(field: number, value: number): Buffer {
  return Buffer.concat([varint(field * 8 + varintType), varint(value)]);
}

/** A field of type string, bytes or message. */
function lengthPrefixed(field: number, value: string | Buffer): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([varint(field * 8 + lengthPrefixedType), varint(bytes.length), bytes]);
}

/** Seven bits per byte, lowest first; the eighth bit means that more bytes follow. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
  return Buffer.from(bytes);
}
