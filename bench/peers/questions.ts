import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { CheckBatchRequest, CheckBatchResponse, CheckRequest, Decision } from "@sluice/protocol";
import { RateLimitRequest, RateLimitResponse } from "@sluice/protocol/envoy";
import type { RespSize } from "../service/load-tools.ts";

/** The limit of every subject under load: so many an hour that it is never reached. */
export const hourlyLimit = 1_000_000_000;
/** The limit where memory is measured: so few that a counter is not full again, and forgotten, before the end. */
export const fewPerHour = 5;
const hourMs = 3_600_000;
const hourSeconds = 3_600;

/** A question that a load tool repeats, and how to tell that its answer is a decision that allows. */
export type Question = GrpcQuestion | HttpQuestion | RespQuestion;

interface GrpcQuestion {
  readonly protocol: "grpc";
  readonly path: string;
  readonly message: Uint8Array;
  readonly isAllowed: (answer: Uint8Array) => boolean;
}

interface HttpQuestion {
  readonly protocol: "http";
  readonly path: string;
  /** `%d` is the subject. */
  readonly body: string;
  readonly isAllowed: (answer: unknown) => boolean;
}

interface RespQuestion {
  readonly protocol: "resp";
  /** `__rand_int__` is the subject, as redis-benchmark writes it. */
  readonly command: readonly string[];
  readonly size: RespSize;
  /** The answer as it was sent. */
  readonly isAllowed: (answer: string) => boolean;
}

const subjects = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

/** The subject that everything asks about which cannot vary it. */
const user = "user-7";

export const envoyQuestion: GrpcQuestion = {
  protocol: "grpc",
  path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
  message: envoyMessage("user", [user]),
  isAllowed: (answer) => {
    const { overallCode, statuses } = RateLimitResponse.decode(answer);
    return overallCode === 1 && statuses[0]?.currentLimit !== undefined;
  },
};

/** One question about all values of a descriptor together. */
export function envoyMessage(key: "user" | "key", values: readonly string[]): Uint8Array {
  const descriptors = values.map((value) => ({ entries: [{ key, value }] }));
  return RateLimitRequest.encode(RateLimitRequest.fromPartial({ domain: "shop", descriptors })).finish();
}

const sluiceCheck = (of: string): CheckRequest =>
  CheckRequest.fromPartial({ dimensions: { user: of, endpoint: "/v1/orders" } });

export const sluiceQuestion: GrpcQuestion = {
  protocol: "grpc",
  path: "/sluice.v1.RateLimiter/Check",
  message: CheckRequest.encode(sluiceCheck(user)).finish(),
  isAllowed: (answer) => isLimited(Decision.decode(answer)),
};

export const sluiceBatch = (count: number): GrpcQuestion => ({
  protocol: "grpc",
  path: "/sluice.v1.RateLimiter/CheckBatch",
  message: CheckBatchRequest.encode({
    sequence: 1,
    checks: subjects(count).map((i) => sluiceCheck(`user-${i}`)),
    deadlineMs: 0,
  }).finish(),
  isAllowed: (answer) => {
    const { results } = CheckBatchResponse.decode(answer);
    return results.length === count && results.every(({ decision }) => decision !== undefined && isLimited(decision));
  },
});

function isLimited({ allowed, policy }: Decision): boolean {
  return allowed && policy === "orders";
}

export const gubernatorQuestion = (count: number): GrpcQuestion => ({
  protocol: "grpc",
  path: "/pb.gubernator.V1/GetRateLimits",
  message: gubernatorMessage(hourlyLimit, count === 1 ? [user] : subjects(count).map((i) => `user-${i}`)),
  isAllowed: (answer) => {
    const limits = readGubernatorLimits(answer);
    return limits.length === count && limits.every((limit) => limit === hourlyLimit);
  },
});

/** `GetRateLimitsReq{requests 1: RateLimitReq{name 1, unique_key 2, hits 3, limit 4, duration 5}}`, with its token bucket. */
export function gubernatorMessage(limit: number, keys: readonly string[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const key of keys)
    writer
      .uint32(0x0a)
      .fork()
      .uint32(0x0a)
      .string("orders")
      .uint32(0x12)
      .string(key)
      .uint32(0x18)
      .int64(1)
      .uint32(0x20)
      .int64(limit)
      .uint32(0x28)
      .int64(hourMs)
      .join();
  return writer.finish();
}

/** `GetRateLimitsResp{responses 1: RateLimitResp{status 1, limit 2, error 5}}`: the limits, none for a denial or an error. */
function readGubernatorLimits(answer: Uint8Array): readonly (number | undefined)[] {
  const limits: (number | undefined)[] = [];
  const reader = new BinaryReader(answer);
  while (reader.pos < reader.len) {
    reader.tag();
    const response = new BinaryReader(reader.bytes());
    let limit: number | undefined;
    let denied = false;
    while (response.pos < response.len) {
      const [field, type] = response.tag();
      if (field === 2) limit = Number(response.int64());
      else {
        denied ||= field === 1 || field === 5;
        response.skip(type, field);
      }
    }
    limits.push(denied ? undefined : limit);
  }
  return limits;
}

/** `ThrottleRequest{key 1, max_burst 2, count_per_period 3, period 4, quantity 5}`, `ThrottleResponse{allowed 1}`. */
export const throttlecrabQuestion: GrpcQuestion = {
  protocol: "grpc",
  path: "/throttlecrab.RateLimiter/Throttle",
  message: new BinaryWriter()
    .uint32(0x0a)
    .string(user)
    .uint32(0x10)
    .int32(hourlyLimit)
    .uint32(0x18)
    .int32(hourlyLimit)
    .uint32(0x20)
    .int32(hourSeconds)
    .uint32(0x28)
    .int32(1)
    .finish(),
  isAllowed: (answer) => answer[0] === 0x08 && answer[1] === 1,
};

export const sluicePost: HttpQuestion = {
  protocol: "http",
  path: "/v1/check",
  body: '{"dimensions":{"user":"user-%d","endpoint":"/v1/orders"}}',
  isAllowed: (answer) => isLimited(answer as Decision),
};

export const gubernatorPost: HttpQuestion = {
  protocol: "http",
  path: "/v1/GetRateLimits",
  body: `{"requests":[{"name":"orders","unique_key":"user-%d","hits":1,"limit":${hourlyLimit},"duration":${hourMs}}]}`,
  isAllowed: (answer) => {
    const [first] = (answer as { responses: { status: string; error: string }[] }).responses;
    return first?.status === "UNDER_LIMIT" && !first.error;
  },
};

export const throttlecrabPost: HttpQuestion = {
  protocol: "http",
  path: "/throttle",
  body: `{"key":"user-%d","max_burst":${hourlyLimit},"count_per_period":${hourlyLimit},"period":${hourSeconds},"quantity":1}`,
  isAllowed: (answer) => (answer as { allowed: boolean }).allowed,
};

/** The limit is part of the command in both. */
const throttle = ["user:__rand_int__", `${hourlyLimit}`, `${hourlyLimit}`, `${hourSeconds}`] as const;

export const sluiceThrottle = (size: RespSize): RespQuestion => ({
  protocol: "resp",
  command: ["CL.THROTTLE", ...throttle],
  size,
  isAllowed: (answer) => answer.startsWith("*5\r\n:0\r\n"),
});

export const throttlecrabThrottle = (size: RespSize): RespQuestion => ({
  protocol: "resp",
  command: ["THROTTLE", ...throttle],
  size,
  isAllowed: (answer) => answer.startsWith("*5\r\n:1\r\n"),
});
