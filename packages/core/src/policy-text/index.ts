export {
  type ParsedPolicyFiles,
  type ParsedPolicyText,
  type PolicyDialect,
  type PolicyText,
  parsePolicyFiles,
  parsePolicyText,
} from "./parse-policy-text.ts";
export type { RateLimitsRuntime } from "./rate-limits-runtime.ts";
