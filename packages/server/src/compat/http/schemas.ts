import type { JsonSchema } from "sluice/shape";
import { integer, nullable, number, object, text, yesOrNo } from "../../data-plane/transports/http/schema-parts.ts";

export type CompatSchemaName = "ShouldAllowAnswer" | "RateLimitAnswer";

const bucketResult = {
  allowed: yesOrNo,
  tokens_remaining: nullable(number),
  tokens_capacity: nullable(number),
  retry_after_seconds: nullable(number),
  reset_at: nullable({ type: "string", format: "date-time" }),
  degraded: yesOrNo,
  degraded_reason: nullable(text),
} satisfies Readonly<Record<string, JsonSchema>>;

/** The answers of these routes, by name. */
export const compatSchemas: Readonly<Record<CompatSchemaName, JsonSchema>> = {
  ShouldAllowAnswer: object({ allowed: yesOrNo, remaining: nullable(number), reset_time: nullable(integer) }),
  RateLimitAnswer: object(
    {
      ...bucketResult,
      error: { enum: ["rate_limit_exceeded", "storage_unavailable"] },
      blocking_limit: nullable(text),
      retry_after: nullable(number),
      limit_results: { type: "object", additionalProperties: object({ ...bucketResult, policy: text }) },
      most_restrictive_limit: object(bucketResult),
    },
    "error",
    "blocking_limit",
    "retry_after",
    "limit_results",
    "most_restrictive_limit",
  ),
};
